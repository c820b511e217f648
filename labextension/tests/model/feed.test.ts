import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { ITimings, ITransport, News } from '../../src/model/feed';
import { Feed } from '../../src/model/feed';
import type { Link } from '../../src/model/link';
import { Refusal } from '../../src/model/link';
import type { Status } from '../../src/model/protocol';
import { PROTOCOL } from '../../src/model/protocol';
import { failure, status } from '../builders';

const QUICK: ITimings = {
  pollMs: 1,
  pollsPerTry: 3,
  silenceMs: 60_000,
  firstPauseMs: 1,
  longestPauseMs: 2
};

/** A server half that does what a test says, and a listener that a test waits on. */
class Stage implements ITransport {
  protocol = PROTOCOL;
  refusal: Refusal | null = null;
  polled: Status | Refusal = status();
  refusesSocket = false;
  sockets: { say: (news: News) => void; drop: () => void; isOpen: boolean }[] = [];
  links: Link[] = [];
  news: News[] = [];
  readonly feed = new Feed(this, this, QUICK);
  private waiting: { ready: () => boolean; resolve: () => void }[] = [];

  async half() {
    if (this.refusal) {
      throw this.refusal;
    }
    return { software: '9.9', protocol: this.protocol };
  }

  async status() {
    if (this.polled instanceof Refusal) {
      throw this.polled;
    }
    return this.polled;
  }

  async cancel() {}

  watch(onNews: (news: News) => void, onClose: () => void) {
    const socket = { say: onNews, drop: onClose, isOpen: !this.refusesSocket };
    this.sockets.push(socket);
    if (this.refusesSocket) {
      queueMicrotask(onClose);
    }
    this.look();
    return { close: () => (socket.isOpen = false) };
  }

  onLink(link: Link) {
    this.links.push(link);
    this.look();
  }

  onNews(news: News) {
    this.news.push(news);
    this.look();
  }

  until(ready: () => boolean): Promise<void> {
    return new Promise(resolve => {
      this.waiting.push({ ready, resolve });
      this.look();
    });
  }

  get link() {
    return this.links[this.links.length - 1]?.kind;
  }

  private look() {
    this.waiting.filter(each => each.ready()).forEach(each => each.resolve());
  }
}

async function staged(play: (stage: Stage) => Promise<void>, prepare?: (stage: Stage) => void) {
  const stage = new Stage();
  prepare?.(stage);
  const running = stage.feed.run();
  await play(stage);
  stage.feed.dispose();
  await running;
}

test('news comes over the websocket, which is opened again after it was dropped', () =>
  staged(async stage => {
    await stage.until(() => stage.sockets.length === 1);
    stage.sockets[0]!.say(status());
    assert.equal(stage.link, 'live');
    stage.sockets[0]!.drop();
    await stage.until(() => stage.sockets.length === 2);
    stage.sockets[1]!.say(failure());
    assert.deepEqual(
      stage.news.map(news => news.type),
      ['Status', 'Failure']
    );
  }));

test('where the websocket is refused the feed polls, says so and tries the websocket again', () =>
  staged(
    async stage => {
      await stage.until(() => stage.sockets.length === 3);
      assert.ok(stage.news.length >= 2 * QUICK.pollsPerTry);
      assert.deepEqual(
        stage.links.map(link => link.kind),
        ['polling']
      );
      stage.refusesSocket = false;
      const before = stage.sockets.length;
      await stage.until(() => stage.sockets.length > before);
      stage.sockets[stage.sockets.length - 1]!.say(status());
      assert.equal(stage.link, 'live');
    },
    stage => (stage.refusesSocket = true)
  ));

test('a poll that the server half refuses passes on what it said', () =>
  staged(
    async stage => {
      await stage.until(() => stage.news.length > 0);
      assert.deepEqual(stage.news[0], failure());
      assert.equal(stage.link, 'polling');
    },
    stage => {
      stage.refusesSocket = true;
      stage.polled = new Refusal(503, 'down', failure());
    }
  ));

test('a server without our routes lacks its half, and is asked again', () =>
  staged(
    async stage => {
      await stage.until(() => stage.link === 'server-half-missing');
      assert.equal(stage.sockets.length, 0);
      stage.refusal = null;
      await stage.until(() => stage.sockets.length === 1);
    },
    stage => (stage.refusal = new Refusal(404, 'no such route'))
  ));

test('a server that does not answer is unreachable, with the reason', () =>
  staged(
    async stage => {
      await stage.until(() => stage.link === 'unreachable');
      assert.deepEqual(stage.links[0], { kind: 'unreachable', message: 'no route to host' });
    },
    stage => (stage.refusal = new Refusal(null, 'no route to host'))
  ));

test('another protocol is told and no websocket is opened', () =>
  staged(
    async stage => {
      await stage.until(() => stage.link === 'mismatch');
      assert.equal(stage.sockets.length, 0);
    },
    stage => (stage.protocol = PROTOCOL + 1)
  ));

test('a hidden page closes its websocket and opens one when it is shown', () =>
  staged(async stage => {
    await stage.until(() => stage.sockets.length === 1);
    stage.sockets[0]!.say(status());
    stage.feed.setVisible(false);
    await stage.until(() => stage.link === 'paused');
    assert.equal(stage.sockets[0]!.isOpen, false);
    stage.sockets[0]!.say(status());
    assert.equal(stage.news.length, 1, 'news of a closed websocket is dropped');
    stage.feed.setVisible(true);
    await stage.until(() => stage.sockets.length === 2);
  }));
