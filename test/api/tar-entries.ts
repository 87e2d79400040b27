import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';

export interface TarEntry {
  readonly name: string;
  readonly type?: 'file' | 'directory' | 'symlink' | 'link';
  readonly linkname?: string;
  readonly body?: string | Buffer;
}

/** A gzipped tar of any entries, also such as nobody should unpack. */
export async function tarOf(entries: readonly TarEntry[]): Promise<Uint8Array> {
  const out = pack();
  const chunks: Buffer[] = [];
  const read = (async () => {
    for await (const chunk of out) chunks.push(chunk as Buffer);
  })();
  for (const { body = '', ...header } of entries) out.entry(header, body);
  out.finalize();
  await read;
  return gzipSync(Buffer.concat(chunks));
}
