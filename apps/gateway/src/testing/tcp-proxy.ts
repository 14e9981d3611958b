import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** A TCP proxy that can be made to swallow what it gets, or to hang up: a dependency that is away, or far, on demand. */
export class TcpProxy {
  private readonly sockets = new Set<Socket>();
  private mode: 'pass' | 'swallow' | 'refuse' = 'pass';

  private constructor(
    private readonly server: Server,
    readonly port: number,
    private readonly lagMs: number,
  ) {}

  /** @param lagMs how long bytes are on their way, in milliseconds, each way. */
  static async start(target: { host: string; port: number }, lagMs = 0): Promise<TcpProxy> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const proxy = new TcpProxy(server, (server.address() as AddressInfo).port, lagMs);
    server.on('connection', (near) => proxy.join(near, target));
    return proxy;
  }

  /** Bytes are taken and lost, as on a network that drops packets or a process that is stopped. */
  swallow(): void {
    this.mode = 'swallow';
    for (const socket of this.sockets) socket.pause();
  }

  /** Connections are cut, and new ones too. */
  refuse(): void {
    this.mode = 'refuse';
    for (const socket of this.sockets) socket.destroy();
  }

  pass(): void {
    this.mode = 'pass';
    for (const socket of this.sockets) socket.resume();
  }

  async close(): Promise<void> {
    this.refuse();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private join(near: Socket, target: { host: string; port: number }): void {
    if (this.mode === 'refuse') {
      near.destroy();
      return;
    }
    const far = connect(target);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      this.sockets.add(from);
      from.on('data', (data) => {
        if (this.lagMs === 0) to.write(data);
        else setTimeout(() => to.write(data), this.lagMs);
      });
      from.on('error', () => undefined);
      from.on('close', () => {
        this.sockets.delete(from);
        to.destroy();
      });
      if (this.mode === 'swallow') from.pause();
    }
  }
}
