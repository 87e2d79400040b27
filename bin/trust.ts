import { createPublicKey } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { keyIdOf } from '../constructs/api/signature.ts';
import { type Problem, refuseProblems } from '../constructs/lib/problems.ts';
import type { Invocation } from './invocation.ts';

/** Public keys in files, by key id: the content of Secret `keelson-trust`. @throws ProblemError */
export async function readTrustFiles(invocation: Invocation, files: readonly string[]): Promise<Map<string, string>> {
  const problems: Problem[] = [];
  const keys = new Map<string, string>();
  for (const file of files) {
    const say = (message: string): void => {
      problems.push({
        reason: 'TrustKeyInvalid',
        message,
        file,
        remedy: 'name the .pub file that `keelson keys init` wrote',
      });
    };
    const text = await readFile(resolve(invocation.cwd, file), 'utf8').catch(() => undefined);
    if (text === undefined) say('the file can not be read');
    // A private key would yield a public one, but it has no business here, nor beside one.
    else if (/PRIVATE KEY/.test(text)) say('it holds a private key, which stays where payloads are signed');
    else if (text.split('-----BEGIN ').length > 2) say('it holds more than one key or certificate');
    else if (!text.includes('BEGIN PUBLIC KEY')) say('it is not the PEM of a public key');
    else
      try {
        const key = createPublicKey(text);
        if (key.asymmetricKeyType !== 'ed25519') say('it is not an ed25519 key');
        else keys.set(keyIdOf(key), key.export({ type: 'spki', format: 'pem' }).toString());
      } catch {
        say('it is not the PEM of a public key');
      }
  }
  refuseProblems(problems);
  return keys;
}
