import { verifyFiles } from '../../constructs/api/payload-codec.ts';
import { readTrust, verifySignature } from '../../constructs/api/signature.ts';
import { type Problem, refuseProblems } from '../../constructs/lib/problems.ts';
import { type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { print, table } from '../output.ts';
import { contentsOf } from '../planning.ts';
import { chooseTree, type TreeOptions } from '../trees.ts';
import { readTrustFiles } from '../trust.ts';

export interface Options extends TreeOptions {
  readonly trust?: readonly string[];
}

/** `keelson verify`: whether a rendered tree is whole, its payloads what their digests say, and signed by a trusted key. */
export async function run(invocation: Invocation, options: Options): Promise<ExitCode> {
  const { tree, name } = await chooseTree(invocation, options);
  const { trust } = readTrust(Object.fromEntries(await readTrustFiles(invocation, options.trust ?? [])));
  const problems: Problem[] = [];
  const results: { release: string; digest: string; objects: number; signature: string }[] = [];
  for (const release of contentsOf(tree).keys()) {
    const folder = `payload/${release}/`;
    const files = [...tree].filter(([path]) => path.startsWith(folder));
    const read = verifyFiles(new Map(files.map(([path, bytes]) => [path.slice(folder.length), bytes])), 'tree');
    if (!read.ok) {
      problems.push(...read.problems.map((problem) => ({ ...problem, file: `${folder}${problem.file ?? ''}` })));
      continue;
    }
    const { index, objects } = read.value;
    const verdict = verifySignature(index.digest, index.signature, trust);
    if (options.trust !== undefined && verdict.kind !== 'valid')
      problems.push({
        reason: 'SignatureInvalid',
        message: `the payload is not signed by a trusted key (${verdict.kind})`,
        file: `${folder}index.json`,
        remedy: 'publish with a key that is trusted',
      });
    const signature = verdict.kind === 'unsigned' ? 'unsigned' : `${verdict.keyId} ${verdict.kind}`;
    results.push({ release, digest: index.digest, objects: objects.size, signature });
  }
  refuseProblems(problems);
  print(invocation, options.output, { tree: name, releases: results }, () =>
    table(
      ['RELEASE', 'OBJECTS', 'SIGNATURE', 'DIGEST'],
      results.map((r) => [r.release, String(r.objects), r.signature, r.digest]),
    ),
  );
  return exitCodes.done;
}
