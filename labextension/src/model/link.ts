import type { Failure } from './protocol';

/** How this page is connected to Workbench's half in the Jupyter server. */
export type Link =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'live' }
  /** The websocket is refused, so the page asks again and again. */
  | { readonly kind: 'polling' }
  /** The page is hidden. */
  | { readonly kind: 'paused' }
  /** The Jupyter server knows no route of ours. */
  | { readonly kind: 'server-half-missing' }
  /** The server half speaks another protocol than this page. */
  | { readonly kind: 'mismatch'; readonly software: string; readonly protocol: number }
  /** The Jupyter server itself does not answer, or refuses this page. */
  | { readonly kind: 'unreachable'; readonly message: string };

/** A request that was not carried out. */
export class Refusal extends Error {
  /**
   * @param status The HTTP status; null where no answer came.
   * @param message What happened.
   * @param failure What Workbench's server half said of it; null where it said nothing.
   */
  constructor(
    readonly status: number | null,
    message: string,
    readonly failure: Failure | null = null
  ) {
    super(message);
  }
}

/** The link that a refusal of the first request stands for. */
export function linkAfter(refusal: Refusal): Link {
  if (refusal.status === 404) {
    return { kind: 'server-half-missing' };
  }
  if (refusal.status === 401 || refusal.status === 403) {
    return {
      kind: 'unreachable',
      message: 'The Jupyter server refuses this page. Reload it and log in again.'
    };
  }
  return { kind: 'unreachable', message: refusal.message };
}
