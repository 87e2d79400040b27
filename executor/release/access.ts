/** Whether this executor may do what a plan needs: every missing rule at once. */
import { managers } from '../../constructs/api/constants.ts';
import type { PayloadObject } from '../../constructs/api/payload.ts';
import { isObject } from '../../constructs/lib/json.ts';
import { groupOf } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { eachLimited } from '../apply/concurrency.ts';
import type { Item } from '../apply/items.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KindRef } from '../kube/types.ts';
import type { ReviewObject } from '../kube/verbs/create.ts';

/** One right that is needed, for all of `names`; for objects of any name when there are none. */
export interface NeededRight {
  readonly verb: 'get' | 'list' | 'create' | 'patch' | 'delete';
  readonly group: string;
  readonly resource: string;
  /** Absent for cluster scope. */
  readonly namespace?: string;
  readonly names: readonly string[];
}

/** An object and what is to be done with it. */
export interface Handled {
  readonly entry: Pick<PayloadObject, 'apiVersion' | 'kind' | 'namespace' | 'name'>;
  readonly verbs: readonly NeededRight['verb'][];
}

/** Plural name of a kind: as it is served, or as the CRD that comes with the payload says. */
async function pluralOf(
  client: KubeClient,
  kind: KindRef,
  items: readonly Item[],
  signal: AbortSignal,
): Promise<string | undefined> {
  const served = await client.resource(kind, { signal });
  if (served.type === 'resource') return served.resource.plural;
  const crd = items.find(({ object, entry }) => {
    const names = object.spec?.names;
    const isCrd = entry.kind === 'CustomResourceDefinition' && object.spec?.group === groupOf(kind.apiVersion);
    return isCrd && isObject(names) && names.kind === kind.kind;
  });
  const names = crd?.object.spec?.names;
  return isObject(names) && typeof names.plural === 'string' ? names.plural : undefined;
}

/** The rights that this takes, each once. `items` tell the plurals of kinds that come with the payload. */
export async function neededRights(
  client: KubeClient,
  handled: readonly Handled[],
  items: readonly Item[],
  signal: AbortSignal,
): Promise<NeededRight[]> {
  const rights = new Map<string, NeededRight & { names: string[] }>();
  const plurals = new Map<string, string | undefined>();
  for (const { entry, verbs } of handled) {
    const { apiVersion, kind, namespace, name } = entry;
    const key = `${apiVersion} ${kind}`;
    if (!plurals.has(key)) plurals.set(key, await pluralOf(client, entry, items, signal));
    const resource = plurals.get(key);
    if (resource === undefined) continue;
    // Whatever is handled is also listed, to see what is live of it; a list knows no names.
    for (const verb of ['list' as const, ...verbs]) {
      const place = `${verb} ${groupOf(apiVersion)} ${resource} ${namespace ?? ''}`;
      const right = rights.get(place) ?? {
        verb,
        group: groupOf(apiVersion),
        resource,
        ...(namespace === undefined ? {} : { namespace }),
        names: [],
      };
      if (verb !== 'list') right.names.push(name);
      rights.set(place, right);
    }
  }
  return [...rights.values()];
}

type Answer = 'allowed' | 'denied' | { readonly unavailable: string };

async function review(
  client: KubeClient,
  right: Omit<NeededRight, 'names' | 'verb'> & { verb: string; name?: string },
  signal: AbortSignal,
): Promise<Answer> {
  const { verb, group, resource, namespace, name } = right;
  const question: ReviewObject = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    metadata: {},
    spec: {
      resourceAttributes: {
        verb,
        group,
        resource,
        ...(namespace === undefined ? {} : { namespace }),
        ...(name === undefined ? {} : { name }),
      },
    },
  };
  const answer = await client.create(question, { fieldManager: managers.objects, signal });
  if (answer.type === 'created')
    return isObject(answer.object.status) && answer.object.status.allowed === true ? 'allowed' : 'denied';
  return { unavailable: 'message' in answer ? answer.message : 'no answer' };
}

const describe = ({ verb, group, resource, namespace }: NeededRight): string =>
  `${verb} ${resource}${group === '' ? '' : `.${group}`}${namespace === undefined ? '' : ` in ${namespace}`}`;

/** Every right that is missing. A right that rules give for single names is asked for name by name. */
export async function missingRights(
  client: KubeClient,
  rights: readonly NeededRight[],
  signal: AbortSignal,
): Promise<Problem[]> {
  const everything = await review(client, { verb: '*', group: '*', resource: '*' }, signal);
  if (everything === 'allowed') return [];
  const problems: Problem[] = [];
  await eachLimited(rights, 8, async (right) => {
    const answer = await review(client, right, signal);
    if (answer === 'allowed') return;
    if (answer !== 'denied') {
      problems.push({ reason: 'ApiUnavailable', message: answer.unavailable });
      return;
    }
    const denied: string[] = [];
    for (const name of right.names)
      if ((await review(client, { ...right, name }, signal)) !== 'allowed') denied.push(name);
    const few = `: ${denied.slice(0, 5).join(', ')}${denied.length > 5 ? ` and ${denied.length - 5} more` : ''}`;
    if (denied.length > 0 || right.names.length === 0)
      problems.push({
        reason: 'AccessMissing',
        message: `the executor's account may not ${describe(right)}${denied.length > 0 ? few : ''}`,
        remedy: 'deliver unit 10-system of the same commit, which carries the rules, or grant them',
      });
  });
  return problems;
}
