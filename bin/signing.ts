import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { ProblemError } from '../constructs/lib/problems.ts';
import { type Signer, signerOf } from '../renderer/payload/sign.ts';
import type { Invocation } from './invocation.ts';

/** Where the private key comes from: `--key FILE`, `KEELSON_SIGNING_KEY_FILE`, or `KEELSON_SIGNING_KEY` (the PEM itself). */
export interface KeyOptions {
  readonly key?: string;
  readonly unsigned?: boolean;
}

/**
 * The signer of a publication; undefined when it was said that payloads stay unsigned.
 * @throws ProblemError when there is no key, or it can not be used; its content is never told.
 */
export async function signer(invocation: Invocation, options: KeyOptions): Promise<Signer | undefined> {
  if (options.unsigned === true) return undefined;
  const file = options.key ?? invocation.env.KEELSON_SIGNING_KEY_FILE;
  const value = invocation.env.KEELSON_SIGNING_KEY;
  const from = file === undefined ? 'KEELSON_SIGNING_KEY' : file;
  const fail = (message: string, remedy: string): never => {
    throw new ProblemError([{ reason: 'SigningKey', message, object: from, remedy }]);
  };
  if (file === undefined && (value === undefined || value === ''))
    throw new ProblemError([
      {
        reason: 'SigningKey',
        message: 'there is no key to sign with',
        remedy:
          'name it with --key or KEELSON_SIGNING_KEY_FILE, or publish with --unsigned; `keelson keys init` makes one',
      },
    ]);
  const pem =
    file === undefined
      ? (value ?? '')
      : await readFile(resolve(invocation.cwd, file), 'utf8').catch((error: NodeJS.ErrnoException) =>
          fail(`the key can not be read (${error.code ?? 'error'})`, 'check the path and its permissions'),
        );
  try {
    return signerOf(pem);
  } catch {
    return fail('it is not the PEM of an ed25519 private key', 'make a key with `keelson keys init`');
  }
}
