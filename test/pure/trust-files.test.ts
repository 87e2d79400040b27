import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { runKeelson } from '../commandline.ts';
import { type Copy, using } from './render-support.ts';

/** What `--trust FILE` takes for a key; files are looked at before anything else is. */

const pair = (): { open: string; secret: string } => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  return {
    open: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    secret: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
};
const { open, secret } = pair();
const other = pair();

interface Told {
  readonly reason: string;
  readonly message: string;
  readonly file?: string;
}

/** What bootstrap says of a file; the folder of the cluster that it asks for next does not exist. */
async function told(copy: Copy, text: string): Promise<Told[]> {
  const cwd = dirname(dirname(copy.folder));
  writeFileSync(join(cwd, 'key.pub'), text);
  const args = ['bootstrap', '-c', 'clusters/none', '--trust', 'key.pub', '-o', 'json'];
  const said = await runKeelson(args, { env: { PATH: process.env.PATH, HOME: cwd }, cwd });
  assert.is(said.code, 2, said.err);
  for (const line of [secret, other.secret].flatMap((pem) => pem.split('\n')[1] ?? 'missing'))
    assert.not(`${said.out}${said.err}`.includes(line), 'a private key was told');
  return JSON.parse(said.err).problems;
}

const refused: readonly (readonly [string, string, RegExp])[] = [
  ['a private key', secret, /a private key/],
  ['a public key before its private key', `${open}${secret}`, /a private key/],
  ['a private key before its public key', `${secret}${open}`, /a private key/],
  ['a public key before the private key of another', `${open}${other.secret}`, /a private key/],
  ['two public keys', `${open}${other.open}`, /more than one key/],
  ['one public key twice', `${open}\n${open}`, /more than one key/],
  ['no key', 'no key\n', /not the PEM of a public key/],
  ['half a key', open.slice(0, 60), /not the PEM of a public key/],
];

for (const [name, text, words] of refused)
  test(`a file with ${name} is no trusted key`, () =>
    using(async (copy) => {
      const problems = await told(copy, text);
      assert.equal(
        problems.map(({ reason, file }) => [reason, file]),
        [['TrustKeyInvalid', 'key.pub']],
      );
      assert.match(problems[0]?.message ?? '', words);
    }));

test('a public key is taken as it is, and with blanks, other line ends or a remark around it', () =>
  using(async (copy) => {
    for (const text of [
      open,
      open.trimEnd(),
      `\n\n${open}\n\n`,
      open.replaceAll('\n', '\r\n'),
      open.replaceAll('\n', '  \n'),
      `# the key of CI\n${open}# until 2031\n`,
    ])
      assert.equal(
        (await told(copy, text)).map(({ reason }) => reason),
        ['FolderMissing'],
        JSON.stringify(text),
      );
  }));

test.run();
