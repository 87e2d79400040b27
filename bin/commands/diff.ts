import { managers } from '../../constructs/api/constants.ts';
import { type PayloadObject, payloadObjectId } from '../../constructs/api/payload.ts';
import { getAt, isObject, type JsonValue, setAt, toPointer } from '../../constructs/lib/json.ts';
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
      const entries = new Map(content.phases.flatMap((p) => p.objects).map((entry) => [payloadObjectId(entry), entry]));
      for (const object of objectsBelow(tree, `payload/${release}`)) {
        const entry = entries.get(objectId(refOf(object)));
        if (entry === undefined || entry.absent || entry.createOnly) continue;
        const difference = await compare(invocation, client, { release, object, entry });
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

interface Wanted {
  readonly release: string;
  readonly object: KubeObject;
  readonly entry: PayloadObject;
}

/** The object as the executor would write it: what it binds or gives up is taken from the live object. */
function bound({ object, entry }: Wanted, live: KubeObject): KubeObject {
  let result: JsonValue = object;
  for (const { at } of entry.bind ?? []) {
    const value = getAt(live, at);
    if (value !== undefined) result = setAt(result, at, value);
  }
  if (entry.conflict === 'yield')
    for (const at of entry.yieldFields ?? [])
      if (getAt(result, at) !== undefined) result = setAt(result, at, undefined);
  return result as KubeObject;
}

async function compare(invocation: Invocation, client: KubeClient, wanted: Wanted): Promise<Difference | undefined> {
  const { release, object } = wanted;
  const { signal } = invocation;
  const ref = refOf(object);
  const say = (what: Difference['what'], details: readonly string[] = []): Difference => ({
    release,
    object: describeRef(ref),
    what,
    details: details.map((text) => redact(text)),
  });
  const live = await client.get(ref, { signal });
  if (live.type === 'absent' || live.type === 'kindAbsent' || live.type === 'namespaceMissing') return say('missing');
  if (live.type !== 'found') return say('unknown', [live.message]);
  const outcome = await client.apply(bound(wanted, live.object), {
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
