import { Token } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';

import type { IHistory } from './model/history';
import type { Link } from './model/link';
import type { Failure, Status } from './model/protocol';

/** The commands that this extension adds. */
export namespace CommandIDs {
  /** Show the sidebar. */
  export const open = 'gpu-workbench:open';
  /** End one of the user's jobs; takes `ICancelArguments`. */
  export const cancel = 'gpu-workbench:cancel';
}

/** What the command `gpu-workbench:cancel` is given. */
export interface ICancelArguments {
  job: string;
  /** What the user calls it, for the question. */
  name: string;
  /** It has begun, so that work is lost: the user is asked first. */
  hasBegun: boolean;
}

/** What is known of the lab, for everything on this page that shows it. */
export interface ILab {
  /** The latest news; null before the first. Kept while nothing newer can be had. */
  readonly status: Status | null;
  /** Why the controller gives no news now; null while it does. */
  readonly failure: Failure | null;
  /** How this page is connected to the Jupyter server. */
  readonly link: Link;
  /** The last minute of each device. */
  readonly history: IHistory;
  /** Seconds since the figures in `status` were measured, as far as this page knows. */
  ageS(): number;
  /** Jobs that the user has asked to end and that have not ended yet. */
  readonly cancelling: ReadonlySet<string>;
  /** Emitted when anything above has changed. */
  readonly changed: ISignal<ILab, void>;
  /** End one of the user's jobs. Rejects with a `Refusal`. */
  cancel(job: string): Promise<void>;
  /** Try to connect now rather than after the pause. */
  retry(): void;
}

export const ILab = new Token<ILab>(
  'gpu-workbench:ILab',
  'The devices and the queue of the lab, as the Jupyter server tells them.'
);
