/**
 * What `node:fs/promises` offers, by way of the functions with callbacks: that module brings along others (readline, the
 * history of a prompt), which cost a sidecar a MiB.
 */
import fs from 'node:fs';
import { promisify } from 'node:util';

export const access = promisify(fs.access);
export const lstat = promisify(fs.lstat);
export const readdir = promisify(fs.readdir);
export const readFile = promisify(fs.readFile);
export const readlink = promisify(fs.readlink);
export const stat = promisify(fs.stat);
export const statfs = promisify(fs.statfs);
export const writeFile = promisify(fs.writeFile);

const [open, read, close] = [promisify(fs.open), promisify(fs.read), promisify(fs.close)];

/** The first `bytes` bytes of a file, or all of a shorter one. @throws as reading a file does. */
export async function readStart(path: string, bytes: number): Promise<Buffer> {
  const file = await open(path, 'r');
  try {
    const { bytesRead, buffer } = await read(file, Buffer.alloc(bytes), 0, bytes, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await close(file);
  }
}
