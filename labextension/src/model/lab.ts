import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { ILab } from '../tokens';
import type { IFeedListener, ITransport, News } from './feed';
import { Feed } from './feed';
import type { IHistory } from './history';
import { withSample } from './history';
import type { Link } from './link';
import type { Failure, Status } from './protocol';

/** What is known of the lab, fed by the server half. One a page. */
export class Lab implements ILab, IFeedListener {
  /** @param transport The way to the server half. */
  constructor(private readonly transport: ITransport) {
    this.feed = new Feed(transport, this);
  }

  status: Status | null = null;
  failure: Failure | null = null;
  link: Link = { kind: 'connecting' };
  history: IHistory = new Map();
  cancelling: ReadonlySet<string> = new Set();

  get changed(): ISignal<this, void> {
    return this.changes;
  }

  /** Begin to listen; returns when the model has been disposed. */
  run(): Promise<void> {
    return this.feed.run();
  }

  setVisible(isVisible: boolean): void {
    this.feed.setVisible(isVisible);
  }

  retry(): void {
    this.feed.retry();
  }

  ageS(): number {
    return (Date.now() - this.measuredMs) / 1000;
  }

  async cancel(job: string): Promise<void> {
    this.setCancelling([...this.cancelling, job]);
    try {
      await this.transport.cancel(job);
    } catch (error) {
      this.setCancelling([...this.cancelling].filter(each => each !== job));
      throw error;
    }
  }

  onLink(link: Link): void {
    this.link = link;
    this.changes.emit();
  }

  onNews(news: News): void {
    if (news.type === 'Failure') {
      this.failure = news;
      this.changes.emit();
      return;
    }
    if (news.sample && news.sample.at_unix_s !== this.status?.sample?.at_unix_s) {
      this.measuredMs = Date.now();
      this.history = withSample(this.history, news.sample);
    }
    this.failure = null;
    this.status = news;
    const alive = news.jobs.filter(job => job.state !== 'stopping').map(job => job.id);
    this.setCancelling([...this.cancelling].filter(job => alive.includes(job)));
  }

  private setCancelling(jobs: string[]): void {
    this.cancelling = new Set(jobs);
    this.changes.emit();
  }

  private readonly feed: Feed;
  private readonly changes = new Signal<this, void>(this);
  private measuredMs = Date.now();
}
