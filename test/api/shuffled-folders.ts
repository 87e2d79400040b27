/** Loaded before a program, lets folders list their entries in an order that no file system promised: the reverse. */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const { readdir } = fs.promises;
const reversed = async (...args: Parameters<typeof readdir>): Promise<unknown[]> =>
  [...(await readdir(...args))].reverse();
Object.assign(fs.promises, { readdir: reversed });
syncBuiltinESMExports();
