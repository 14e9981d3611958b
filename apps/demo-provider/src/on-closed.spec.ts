import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { onClosed } from './on-closed.js';

describe('onClosed', () => {
  it('calls back once, whether the caller leaves later or had left before', async () => {
    let calls = 0;
    const late = new Promise<void>((resolve) => {
      const server = createServer((_request, response) => {
        onClosed(response, () => {
          calls += 1;
          onClosed(response, () => {
            calls += 1;
            server.close(() => resolve());
          });
        });
      });
      server.listen(0, '127.0.0.1', () => {
        const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
        socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n', () => socket.destroy());
      });
    });
    await late;
    expect(calls).toBe(2);
  });
});
