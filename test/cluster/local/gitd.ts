/** Git over HTTP as a program: a cluster's own Git server, behind a password, for as long as the cluster runs. */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { startGitServer } from '../../standins/gitserver.ts';

const { values } = parseArgs({
  options: {
    root: { type: 'string' },
    address: { type: 'string' },
    port: { type: 'string' },
    username: { type: 'string' },
    'password-file': { type: 'string' },
  },
});
const { root = '', address = '127.0.0.1', port = '0', username = '', 'password-file': file = '' } = values;
const { PATH = '', HOME = '' } = process.env;
const server = await startGitServer({
  root,
  address,
  port: Number(port),
  env: { PATH, HOME },
  username,
  password: readFileSync(file, 'utf8').trim(),
});
console.log(`serving ${root} on ${server.url}`);
