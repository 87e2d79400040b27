import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { generateKeyPair } from '../../constructs/api/signature.ts';
import { ProblemError } from '../../constructs/lib/problems.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { print } from '../output.ts';

export interface Options extends CommonOptions {
  readonly out: string;
}

/** `keelson keys init`: a new signing key in a file of its owner alone; the public key is printed and written beside it. */
export async function run(invocation: Invocation, options: Options): Promise<ExitCode> {
  const file = resolve(invocation.cwd, options.out);
  const pair = generateKeyPair();
  // The public key first: when either file exists, nothing has been lost.
  await writeNew(`${file}.pub`, pair.publicKey, 0o644);
  await writeNew(file, pair.privateKey, 0o600);
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

async function writeNew(file: string, text: string, mode: number): Promise<void> {
  try {
    await writeFile(file, text, { mode, flag: 'wx' });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ProblemError([
      {
        reason: 'SigningKey',
        message: code === 'EEXIST' ? 'the file exists already' : `the file can not be written (${code})`,
        file,
        remedy: 'choose another name with --out; an existing key is never overwritten',
      },
    ]);
  }
}
