import { Duplex } from 'node:stream';

/** One end of a connection within the process: what is written to one is read from the other, which takes it when it wants. */
class End extends Duplex {
  other: End | undefined;
  #taken: (() => void) | undefined;

  override _write(chunk: Buffer, _encoding: BufferEncoding, written: () => void): void {
    const { other } = this;
    if (other === undefined || other.destroyed || other.push(chunk)) written();
    else other.#taken = written;
  }

  override _read(): void {
    const taken = this.#taken;
    this.#taken = undefined;
    taken?.();
  }

  override _final(ended: () => void): void {
    this.other?.push(null);
    ended();
  }

  /** Like a socket: when one end is gone, the other one hears of it. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const { other } = this;
    if (other !== undefined && !other.destroyed && !other.readableEnded) setImmediate(() => other.push(null));
    done(error);
  }
}

export function streamPair(): [Duplex, Duplex] {
  const [near, far] = [new End(), new End()];
  near.other = far;
  far.other = near;
  return [near, far];
}
