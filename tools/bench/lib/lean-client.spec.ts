import { createServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { LeanClient } from './lean-client.mjs';

const closes: (() => void)[] = [];
afterEach(() => {
  for (const close of closes.splice(0)) close();
});

/** A server that answers each request with these pieces, each in a packet of its own. */
async function serverAnswering(...pieces: readonly string[]) {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (request) => {
      requests.push(request.toString());
      const next = (index: number): void => {
        const piece = pieces[index];
        if (piece === undefined) return;
        if (piece === 'close') socket.destroy();
        else socket.write(piece, () => setImmediate(() => next(index + 1)));
      };
      next(0);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(() => resolve()));
  };
  closes.push(() => void close());
  const { port } = server.address() as AddressInfo;
  return { requests, origin: `http://127.0.0.1:${port}`, openSockets: () => sockets.size, close };
}

function clientOf(origin: string, connectionsMax = 1) {
  const target = { origin, path: '/v1/x', headers: { 'x-one': 'eins' }, body: '{"ü":1}' };
  const client = new LeanClient(target, { connectionsMax, timeoutMs: 5_000 });
  closes.push(() => client.close());
  return client;
}

/** Sends as many calls at once, and gives status and tag of each in the order of their answers. */
function answers(client: LeanClient, count: number): Promise<[number, number][]> {
  return new Promise((resolve) => {
    const found: [number, number][] = [];
    for (let tag = 1; tag <= count; tag += 1) {
      client.send(tag, (status, answered) => {
        found.push([status, answered]);
        if (found.length === count) resolve(found);
      });
    }
  });
}

const whole = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd';
const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';

describe('LeanClient', () => {
  it('sends the whole request and waits for the whole answer', async () => {
    const server = await serverAnswering(whole);
    expect(await answers(clientOf(server.origin), 1)).toEqual([[200, 1]]);
    const [request = ''] = server.requests;
    expect(request).toMatch(/^POST \/v1\/x HTTP\/1.1\r\nhost: 127.0.0.1:\d+\r\n/);
    expect(request).toContain('\r\ncontent-length: 8\r\nx-one: eins\r\n\r\n{"ü":1}');
  });

  it('makes all its connections beforehand when told to, and then no more', async () => {
    const server = await serverAnswering(whole);
    const client = clientOf(server.origin, 3);
    await client.open();
    // The server may hear of a connection a little later than its client.
    await vi.waitFor(() => expect(server.openSockets()).toBe(3));
    expect(server.requests).toEqual([]);
    expect(await answers(client, 9)).toHaveLength(9);
    expect(server.openSockets()).toBe(3);
  });

  it('fails its calls where no connection can be made', async () => {
    const server = await serverAnswering(whole);
    await server.close();
    const client = clientOf(server.origin, 2);
    await client.open();
    expect(await answers(client, 1)).toEqual([[0, 1]]);
  });

  it.each([
    ['a head in pieces', [...whole]],
    ['an answer without a body', ['HTTP/1.1 429 Too Many\r\ncontent-length: 0\r\n\r\n']],
    ['a chunked body', [`${chunked}4\r\nabcd\r\n`, '0\r\n\r\n']],
    ['a chunked body, byte by byte', [chunked, ...'4\r\nabcd\r\n0\r\n\r\n']],
    ['an empty chunked body', [`${chunked}0\r\n\r\n`]],
    ['an end mark in the text', [`${chunked}8\r\nab0\r\n`, '\r\n', 'c\r\n0\r\n\r\n']],
  ])('knows where an answer ends: %s', async (_name, pieces) => {
    const server = await serverAnswering(...pieces);
    const status = pieces.join('').slice(9, 12);
    const client = clientOf(server.origin);
    // The second goes over the same connection when the first is at its end.
    expect(await answers(client, 2)).toEqual([
      [Number(status), 1],
      [Number(status), 2],
    ]);
    expect(server.openSockets()).toBe(1);
    expect(server.requests).toHaveLength(2);
  });

  it('opens no more connections than it may', async () => {
    const server = await serverAnswering(whole);
    const client = clientOf(server.origin, 2);
    expect((await answers(client, 9)).map(([status]) => status)).toEqual(Array(9).fill(200));
    expect(server.openSockets()).toBe(2);
  });

  it('counts an answer that breaks off as failed, and goes on over a new connection', async () => {
    const server = await serverAnswering(whole.slice(0, -1), 'close');
    expect(await answers(clientOf(server.origin), 2)).toEqual([
      [0, 1],
      [0, 2],
    ]);
    expect(server.requests).toHaveLength(2);
  });

  it('fails what is under way or waits when it is closed', async () => {
    const server = await serverAnswering(whole.slice(0, -1));
    const client = clientOf(server.origin);
    const failed = answers(client, 2);
    client.close();
    expect((await failed).map(([status]) => status)).toEqual([0, 0]);
  });
});
