import { IncomingMessage, ServerResponse } from 'node:http';
import { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { RecordedAnswer } from '../idempotency/idempotency-store.js';
import { ClientStream, streamHead } from './client-stream.js';

/** A caller's connection. It takes nothing until it is told to. */
class Connection extends Duplex {
  sent = '';
  private readonly held: (() => void)[] = [];
  private isOpen = false;

  override _read(): void {
    // The request has been read.
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.sent += chunk.toString('utf8');
    if (this.isOpen) done();
    else this.held.push(done);
  }

  async open(): Promise<void> {
    this.isOpen = true;
    for (const done of this.held.splice(0)) done();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function caller(): { connection: Connection; client: ClientStream } {
  const connection = new Connection({ writableHighWaterMark: 1_024 });
  const response = new ServerResponse(new IncomingMessage(connection as never));
  response.assignSocket(connection as never);
  return { connection, client: new ClientStream(response, 'request-1', 60_000) };
}

describe('the head of an answer', () => {
  it('carries the request id, whether the answer is whole, a stream or a comment first', async () => {
    for (const answer of [
      (client: ClientStream) => client.answer(200, { 'x-own': 'kept' }, '{}'),
      (client: ClientStream) => client.begin(200, { ...streamHead, 'x-own': 'kept' }),
      (client: ClientStream) => client.comment('waiting', { ...streamHead, 'x-own': 'kept' }),
    ]) {
      const { connection, client } = caller();
      answer(client);
      await connection.open();
      expect(connection.sent).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
      expect(connection.sent).toContain('\r\nx-request-id: request-1\r\n');
      expect(connection.sent).toContain('\r\nx-own: kept\r\n');
    }
  });
});

describe('the comments of a stream that has not begun', () => {
  it('open it once, and the answer that follows goes on in it', async () => {
    const { connection, client } = caller();
    await connection.open();
    expect(client.isWaiting).toBe(false);
    client.comment('waiting, position 2', streamHead);
    client.comment('waiting, position 1', streamHead);
    expect(client.isWaiting).toBe(true);
    client.begin(200, { ...streamHead, 'x-late': 'not sent any more' });
    expect(client.isWaiting).toBe(false);
    await client.write(Buffer.from('data: {}\n\n'));
    client.end('data: [DONE]\n\n');
    expect(connection.sent.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(1);
    expect(connection.sent).toMatch(
      /: waiting, position 2\n\n[^]*: waiting, position 1\n\n[^]*data: \{\}\n\n[^]*data: \[DONE\]\n\n/,
    );
    expect(connection.sent).not.toContain('x-late');
  });

  it('do not pile up before a caller that takes nothing', async () => {
    const { connection, client } = caller();
    for (let count = 0; count < 1_000; count += 1) client.comment('x'.repeat(100), streamHead);
    await connection.open();
    const received = connection.sent.split('x'.repeat(100)).length - 1;
    expect(received).toBeGreaterThan(0);
    expect(received).toBeLessThan(30);
  });

  it('are no part of the answer that is kept', async () => {
    const { connection, client } = caller();
    await connection.open();
    const kept: (RecordedAnswer | null)[] = [];
    client.record((answer) => Promise.resolve(void kept.push(answer)), 1_000);
    client.comment('waiting', streamHead);
    client.begin(200, streamHead);
    await client.write(Buffer.from('data: {}\n\n'));
    client.end('data: [DONE]\n\n');
    expect(kept.map((answer) => answer?.body.toString())).toEqual(['data: {}\n\ndata: [DONE]\n\n']);
  });

  it('leave nothing to be kept when an error ends the stream', async () => {
    const { connection, client } = caller();
    await connection.open();
    const kept: (RecordedAnswer | null)[] = [];
    client.record((answer) => Promise.resolve(void kept.push(answer)), 1_000);
    client.comment('waiting', streamHead);
    client.end('data: {"error":{}}\n\n');
    expect(connection.sent).toContain('data: {"error":{}}\n\n');
    expect(kept).toEqual([]);
  });
});
