import { rm, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { generateKeyPair } from '../../constructs/api/signature.ts';
import { ProblemError } from '../../constructs/lib/problems.ts';
import { fileTrouble } from '../../constructs/lib/replacefile.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { print } from '../output.ts';

export interface Options extends CommonOptions {
  readonly out: string;
}

/** `keelson keys init`: a new signing key in a file of its owner alone; the public key is printed and written beside it. */
export async function run(invocation: Invocation, options: Options): Promise<ExitCode> {
  const file = resolve(invocation.cwd, options.out);
  const pair = generateKeyPair();
  await writeNew(`${file}.pub`, pair.publicKey, 0o644);
  try {
    await writeNew(file, pair.privateKey, 0o600);
  } catch (error) {
    // A public key beside the private key of another pair would be trusted for nothing.
    await rm(`${file}.pub`, { force: true });
    throw error;
  }
  const told = { keyId: pair.keyId, privateKeyFile: file, publicKeyFile: `${file}.pub`, publicKey: pair.publicKey };
  print(invocation, options.output, told, () =>
    [
      `key ${pair.keyId}`,
      `private key: ${file} (keep it in CI alone; never commit it)`,
      `public key:  ${file}.pub`,
      '',
      pair.publicKey.trimEnd(),
      '',
      `trust it in a cluster with: keelson bootstrap --trust ${options.out}.pub`,
    ].join('\n'),
  );
  return exitCodes.done;
}

/** Writes a file that must not exist; nothing stays of one that could not be written whole. */
async function writeNew(file: string, text: string, mode: number): Promise<void> {
  try {
    await writeFile(file, text, { mode, flag: 'wx' });
  } catch (error) {
    const exists = (error as NodeJS.ErrnoException).code === 'EEXIST';
    if (!exists) await rm(file, { force: true });
    throw new ProblemError([
      {
        reason: 'SigningKey',
        message: exists ? 'the file exists already' : `the file can not be written: ${fileTrouble(error)}`,
        file,
        remedy: exists
          ? 'choose another name with --out; an existing key is never overwritten'
          : 'make room, or choose another place with --out',
      },
    ]);
  }
}
