import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isAbsolute, relative, resolve } from 'node:path';
import type { RegistryMirror } from '../../constructs/api/cluster.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { ExtraCA } from '../http/types.ts';
import { mirrorHosts } from './mirrors.ts';

/** Path of a rule's certificate file; a relative one stays inside `folder`. */
function certificatePath(folder: string, file: string): string | undefined {
  if (isAbsolute(file)) return file;
  const path = resolve(folder, file);
  return relative(folder, path).startsWith('..') ? undefined : path;
}

async function readCertificates(path: string): Promise<string> {
  const pem = await readFile(path, 'utf8');
  new X509Certificate(pem);
  return pem;
}

/** The certificate authorities of the mirror rules, each for its own host; relative files lie in the cluster's `folder`. */
export async function mirrorCertificates(
  registries: readonly RegistryMirror[],
  folder: string,
): Promise<{ certificates: ExtraCA[]; problems: Problem[] }> {
  const certificates: ExtraCA[] = [];
  const problems: Problem[] = [];
  for (const [index, rule] of registries.entries()) {
    const [host] = mirrorHosts([rule]);
    if (rule.caFile === undefined || host === undefined) continue;
    const place = { path: `spec.registries[${index}].caFile`, value: rule.caFile };
    const path = certificatePath(folder, rule.caFile);
    try {
      if (path === undefined)
        problems.push({ reason: 'CertificateInvalid', message: 'the path leaves the cluster folder', ...place });
      else certificates.push({ host, pem: await readCertificates(path) });
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? 'unreadable';
      problems.push({ reason: 'CertificateInvalid', message: `not a readable PEM certificate (${code})`, ...place });
    }
  }
  return { certificates, problems };
}
