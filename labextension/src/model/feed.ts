import type { Link } from './link';
import { linkAfter, Refusal } from './link';
import type { Failure, ServerHalf, Status } from './protocol';
import { PROTOCOL } from './protocol';

/** What the websocket carries. */
export type News = Status | Failure;

/** The way to the server half; `api/request.ts` is the real one. */
export interface ITransport {
  /** Ask which server half answers. Rejects with a `Refusal`. */
  half(): Promise<ServerHalf>;
  /** Ask for the lab now. Rejects with a `Refusal`. */
  status(): Promise<Status>;
  /** End one of the user's jobs. Rejects with a `Refusal`. */
  cancel(job: string): Promise<void>;
  /** Open the websocket; `onClose` is called exactly once, also where it never opened. */
  watch(onNews: (news: News) => void, onClose: () => void): ISocket;
}

export interface ISocket {
  close(): void;
}

/** Who is told. */
export interface IFeedListener {
  onLink(link: Link): void;
  onNews(news: News): void;
}

export interface ITimings {
  /** Between two polls. */
  pollMs: number;
  /** Polls after which the websocket is tried again. */
  pollsPerTry: number;
  /** A websocket that has said nothing for so long counts as refused. */
  silenceMs: number;
  firstPauseMs: number;
  longestPauseMs: number;
}

const TIMINGS: ITimings = {
  pollMs: 2000,
  pollsPerTry: 30,
  silenceMs: 10_000,
  firstPauseMs: 1000,
  longestPauseMs: 30_000
};

/**
 * Keeps the listener up to date: over the websocket where it opens, else by polling; not at all
 * while the page is hidden; and after a failure again, with growing pauses.
 */
export class Feed {
  constructor(
    private readonly transport: ITransport,
    private readonly listener: IFeedListener,
    private readonly timings: ITimings = TIMINGS
  ) {}

  /** Begin; returns when the feed has been disposed. */
  async run(): Promise<void> {
    let pauseMs = this.timings.firstPauseMs;
    while (!this.isDisposed) {
      const { signal } = (this.round = new AbortController());
      if (!this.isVisible) {
        this.tell({ kind: 'paused' });
        await aborted(signal);
        continue;
      }
      const hasHeard = await this.connect(signal);
      if (hasHeard || signal.aborted) {
        pauseMs = this.timings.firstPauseMs;
      }
      await sleep(pauseMs, signal);
      pauseMs = Math.min(2 * pauseMs, this.timings.longestPauseMs);
    }
  }

  /** Pause while the page is hidden. */
  setVisible(isVisible: boolean): void {
    if (isVisible !== this.isVisible) {
      this.isVisible = isVisible;
      this.round.abort();
    }
  }

  /** Connect now rather than after the pause. */
  retry(): void {
    this.round.abort();
  }

  dispose(): void {
    this.isDisposed = true;
    this.round.abort();
  }

  /** One attempt, for as long as it holds. Returns whether there was any news. */
  private async connect(signal: AbortSignal): Promise<boolean> {
    if (this.link.kind !== 'polling') {
      this.tell({ kind: 'connecting' });
    }
    try {
      const { software, protocol } = await this.transport.half();
      if (protocol !== PROTOCOL) {
        this.tell({ kind: 'mismatch', software, protocol });
        return false;
      }
      return (await this.listen(signal)) || (await this.poll(signal));
    } catch (error) {
      if (!(error instanceof Refusal)) {
        throw error;
      }
      this.tell(linkAfter(error));
      return false;
    }
  }

  /** Listen to the websocket until it closes. Returns whether there was any news. */
  private async listen(signal: AbortSignal): Promise<boolean> {
    let hasHeard = false;
    const over = new AbortController();
    const stop = (): void => over.abort();
    const silence = setTimeout(stop, this.timings.silenceMs);
    signal.addEventListener('abort', stop);
    const socket = signal.aborted
      ? null
      : this.transport.watch(news => {
          if (!over.signal.aborted) {
            clearTimeout(silence);
            hasHeard = true;
            this.tell({ kind: 'live' });
            this.listener.onNews(news);
          }
        }, stop);
    if (socket) {
      await aborted(over.signal);
      socket.close();
    }
    clearTimeout(silence);
    signal.removeEventListener('abort', stop);
    return hasHeard;
  }

  private async poll(signal: AbortSignal): Promise<boolean> {
    for (let polls = 0; polls < this.timings.pollsPerTry && !signal.aborted; polls++) {
      this.tellPolled(await this.transport.status().catch(toFailure), signal);
      await sleep(this.timings.pollMs, signal);
    }
    return true;
  }

  private tellPolled(news: News, signal: AbortSignal): void {
    if (!signal.aborted) {
      this.tell({ kind: 'polling' });
      this.listener.onNews(news);
    }
  }

  private tell(link: Link): void {
    if (JSON.stringify(link) !== JSON.stringify(this.link)) {
      this.link = link;
      this.listener.onLink(link);
    }
  }

  private isDisposed = false;
  private isVisible = true;
  private link: Link = { kind: 'connecting' };
  private round = new AbortController();
}

/** What the server half said of a refused request; rethrows where it said nothing. */
function toFailure(error: unknown): Failure {
  if (error instanceof Refusal && error.failure) {
    return error.failure;
  }
  throw error;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) {
      resolve();
    } else {
      signal.addEventListener('abort', () => resolve(), { once: true });
    }
  });
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, signal.aborted ? 0 : ms);
    signal.addEventListener('abort', done);
  });
}
