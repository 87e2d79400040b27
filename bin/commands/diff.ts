import { managers } from '../../constructs/api/constants.ts';
import { payloadObjectId } from '../../constructs/api/payload.ts';
import { isObject, type JsonValue, toPointer } from '../../constructs/lib/json.ts';
import { objectId } from '../../constructs/lib/names.ts';
import { redact } from '../../constructs/lib/redact.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import { describeRef, type KubeObject, refOf } from '../../executor/kube/types.ts';
import { objectsBelow } from '../delivery.ts';
import { type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { withClient } from '../kube.ts';
import { print } from '../output.ts';
import { contentsOf } from '../planning.ts';
import { chooseTree, type TreeOptions } from '../trees.ts';

interface Difference {
  readonly release: string;
  readonly object: string;
  readonly what: 'missing' | 'differs' | 'held by others' | 'unknown';
  readonly details: readonly string[];
}

/**
 * `keelson diff`: what applying the published payloads would change now. The API server itself answers, by dry run: so
 * defaults and other forms of one value are no differences.
 */
export async function run(invocation: Invocation, options: TreeOptions): Promise<ExitCode> {
  const { tree } = await chooseTree(invocation, options);
  const differences = await withClient(invocation, options, async (client) => {
    const found: Difference[] = [];
    for (const [release, content] of contentsOf(tree)) {
      const skipped = new Set(
        content.phases.flatMap((p) => p.objects.filter((o) => o.absent || o.createOnly).map(payloadObjectId)),
      );
      for (const object of objectsBelow(tree, `payload/${release}`)) {
        if (skipped.has(objectId(refOf(object)))) continue;
        const difference = await compare(invocation, client, release, object);
        if (difference !== undefined) found.push(difference);
      }
    }
    return found;
  });
  print(invocation, options.output, differences, () =>
    differences.length === 0
      ? 'nothing differs'
      : differences
          .map((d) => [`${d.release}: ${d.object}: ${d.what}`, ...d.details.map((line) => `  ${line}`)].join('\n'))
          .join('\n'),
  );
  return differences.length === 0 ? exitCodes.done : exitCodes.differs;
}

async function compare(
  invocation: Invocation,
  client: KubeClient,
  release: string,
  object: KubeObject,
): Promise<Difference | undefined> {
  const { signal } = invocation;
  const ref = refOf(object);
  const say = (what: Difference['what'], details: readonly string[] = []): Difference => ({
    release,
    object: describeRef(ref),
    what,
    details: details.map(redact),
  });
  const live = await client.get(ref, { signal });
  if (live.type === 'absent' || live.type === 'kindAbsent' || live.type === 'namespaceMissing') return say('missing');
  if (live.type !== 'found') return say('unknown', [live.message]);
  const outcome = await client.apply(object, {
    fieldManager: managers.objects,
    dryRun: true,
    live: live.object,
    signal,
  });
  switch (outcome.type) {
    case 'unchanged':
      return undefined;
    case 'created':
      return say('missing');
    case 'configured': {
      const paths = differing(bare(live.object), bare(outcome.object), []);
      return paths.length === 0 ? undefined : say('differs', paths);
    }
    case 'conflict':
      return say(
        'held by others',
        outcome.managers.map((m) => `${m.manager} holds ${m.fields.join(', ')}`),
      );
    default:
      return say('unknown', [outcome.message]);
  }
}

function bare(object: KubeObject): JsonValue {
  const { managedFields: _m, resourceVersion: _r, generation: _g, ...metadata } = object.metadata;
  const { status: _status, ...rest } = object;
  return { ...rest, metadata };
}

const shown = (value: JsonValue | undefined): string =>
  (value === undefined ? 'absent' : JSON.stringify(value)).slice(0, 120);

/** `pointer: live -> wanted` of every leaf that differs. */
function differing(live: JsonValue | undefined, wanted: JsonValue | undefined, path: (string | number)[]): string[] {
  if (JSON.stringify(live) === JSON.stringify(wanted)) return [];
  if (isObject(live) && isObject(wanted)) {
    const keys = [...new Set([...Object.keys(live), ...Object.keys(wanted)])].sort();
    return keys.flatMap((key) => differing(live[key], wanted[key], [...path, key]));
  }
  if (Array.isArray(live) && Array.isArray(wanted) && live.length === wanted.length)
    return live.flatMap((item, index) => differing(item, wanted[index], [...path, index]));
  return [`${toPointer(path)}: ${shown(live)} -> ${shown(wanted)}`];
}
