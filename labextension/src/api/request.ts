import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

import type { ISocket, ITransport, News } from '../model/feed';
import { Refusal } from '../model/link';
import type { Failure, ServerHalf, Status } from '../model/protocol';

const ROOT = 'gpu-workbench/api';

/** The way to the server half that the page's own settings lead to (base URL, token, wss). */
export class ServerTransport implements ITransport {
  constructor(private readonly settings = ServerConnection.makeSettings()) {}

  half(): Promise<ServerHalf> {
    return this.ask<ServerHalf>('version');
  }

  status(): Promise<Status> {
    return this.ask<Status>('status');
  }

  async cancel(job: string): Promise<void> {
    await this.ask(`jobs/${encodeURIComponent(job)}/cancel`, { method: 'POST' });
  }

  watch(onNews: (news: News) => void, onClose: () => void): ISocket {
    const { wsUrl, token, appendToken, WebSocket } = this.settings;
    const query = appendToken && token ? URLExt.objectToQueryString({ token }) : '';
    const socket = new WebSocket(URLExt.join(wsUrl, ROOT, 'watch') + query);
    socket.onmessage = event => onNews(JSON.parse(String(event.data)) as News);
    socket.onclose = onClose;
    return socket;
  }

  private async ask<T>(path: string, init: RequestInit = {}): Promise<T> {
    const url = URLExt.join(this.settings.baseUrl, ROOT, path);
    // What the browser says of it, `TypeError: Failed to fetch`, helps nobody.
    const answer = await ServerConnection.makeRequest(url, init, this.settings).catch(() => {
      throw new Refusal(null, 'The Jupyter server does not answer.');
    });
    const body: unknown = await answer.json().catch(() => null);
    if (answer.ok && body !== null) {
      return body as T;
    }
    const failure = isFailure(body) ? body : null;
    const message = failure?.message ?? `The Jupyter server answers with ${answer.status}.`;
    throw new Refusal(answer.ok ? null : answer.status, message, failure);
  }
}

function isFailure(body: unknown): body is Failure {
  return typeof body === 'object' && body !== null && 'type' in body && body.type === 'Failure';
}
