import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Makes a folder with an authority and one certificate of it, under the names that the runtime's scripts expect. */
export async function certificates(dir: string): Promise<void> {
  await mkdir(dir);
  const openssl = (...args: string[]) => run('openssl', args, { cwd: dir });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  await openssl('req', '-x509', ...key, '-keyout', 'cakey', '-out', 'cacert', '-subj', '/CN=ovn-ca', '-days', '2');
  await openssl('req', ...key, '-keyout', 'key', '-out', 'request', '-subj', '/CN=ovn');
  const sign = ['-CA', 'cacert', '-CAkey', 'cakey', '-CAcreateserial', '-out', 'cert', '-days', '2'];
  await openssl('x509', '-req', '-in', 'request', ...sign);
}
