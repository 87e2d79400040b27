/** Whether this executor may do what a plan needs: every missing rule at once. */
import { managers, neverPrunedKinds } from '../../constructs/api/constants.ts';
import { type PayloadContent, type PayloadObject, payloadObjectId } from '../../constructs/api/payload.ts';
import { groupKindOf } from '../../constructs/api/plan.ts';
import { isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
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
interface Handled {
  readonly entry: Pick<PayloadObject, 'apiVersion' | 'kind' | 'namespace' | 'name'>;
  readonly verbs: readonly NeededRight['verb'][];
}

/** Everything that a payload writes or removes when it takes the place of `previous`, with the verbs that this takes. */
export function handledBy(items: readonly Item[], previous: PayloadContent | undefined): Handled[] {
  const wanted = new Set(items.map(({ id }) => id));
  const going = (previous?.phases ?? [])
    .flatMap(({ objects }) => objects)
    .filter((entry) => !wanted.has(payloadObjectId(entry)) && !entry.keep && !entry.absent)
    .filter((entry) => !neverPrunedKinds.includes(groupKindOf(entry)));
  return [
    ...items.map(({ entry }): Handled => {
      if (entry.absent) return { entry, verbs: ['get', 'delete'] };
      return { entry, verbs: entry.recreate ? ['get', 'patch', 'create', 'delete'] : ['get', 'patch', 'create'] };
    }),
    ...going.map((entry): Handled => ({ entry, verbs: ['get', 'delete'] })),
  ];
}

/** How many questions are asked at once. */
const atOnce = 8;

/** `none`: the kind is not served and does not come with the payload, so that no right to it is needed. */
type Plural =
  | { readonly type: 'plural'; readonly plural: string }
  | { readonly type: 'none' }
  | { readonly type: 'unknown'; readonly problem: Problem };

/** Plural name of a kind: as it is served, or as the CRD that comes with the payload says. */
async function pluralOf(
  client: KubeClient,
  { apiVersion, kind }: KindRef,
  items: readonly Item[],
  signal: AbortSignal,
): Promise<Plural> {
  const served = await client.resource({ apiVersion, kind }, { signal });
  if (served.type === 'resource') return { type: 'plural', plural: served.resource.plural };
  const crd = items.find(({ object, entry }) => {
    const names = object.spec?.names;
    const isCrd = entry.kind === 'CustomResourceDefinition' && object.spec?.group === groupOf(apiVersion);
    return isCrd && isObject(names) && names.kind === kind;
  });
  const names = crd?.object.spec?.names;
  if (isObject(names) && typeof names.plural === 'string') return { type: 'plural', plural: names.plural };
  if (served.type === 'kindAbsent') return { type: 'none' };
  const message = `whether the executor's account may write ${kind} of ${apiVersion} is not known: ${served.message}`;
  const reason = served.type === 'forbidden' ? 'Forbidden' : 'ApiUnavailable';
  return { type: 'unknown', problem: { reason, message } };
}

/**
 * The rights that this takes, each once, and for which kinds the API server did not tell. `items` tell the plurals of kinds
 * that come with the payload.
 */
export async function neededRights(
  client: KubeClient,
  handled: readonly Handled[],
  items: readonly Item[],
  signal: AbortSignal,
): Promise<{ readonly rights: readonly NeededRight[]; readonly problems: readonly Problem[] }> {
  const rights = new Map<string, NeededRight & { names: string[] }>();
  const kinds = new Map(handled.map(({ entry }) => [`${entry.apiVersion} ${entry.kind}`, entry]));
  const plurals = new Map<string, Plural>();
  await eachLimited([...kinds], atOnce, async ([key, kind]) => {
    plurals.set(key, await pluralOf(client, kind, items, signal));
  });
  for (const { entry, verbs } of handled) {
    const { apiVersion, kind, namespace, name } = entry;
    const found = plurals.get(`${apiVersion} ${kind}`);
    if (found?.type !== 'plural') continue;
    const resource = found.plural;
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
  const unknown = [...kinds.keys()].flatMap((key) => {
    const found = plurals.get(key);
    return found?.type === 'unknown' ? [found.problem] : [];
  });
  return { rights: [...rights.values()], problems: unknown };
}

type Answer = 'allowed' | 'denied' | 'unknown';

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
  return 'unknown';
}

const describe = ({ verb, group, resource, namespace }: NeededRight): string =>
  `${verb} ${resource}${group === '' ? '' : `.${group}`}${namespace === undefined ? '' : ` in ${namespace}`}`;

/** What the account may do in one namespace, as the API server tells it. */
interface Granted {
  readonly rules: readonly JsonObject[];
  /** False when an authorizer can not list its rules: then what is not among them may be granted all the same. */
  readonly complete: boolean;
}

const has = (values: JsonValue | undefined, wanted: string): boolean =>
  Array.isArray(values) && (values.includes(wanted) || values.includes('*'));

/** Whether a rule gives a right; a rule for names gives it for these alone. */
const gives = (rule: JsonObject, { verb, group, resource }: NeededRight, name: string | undefined): boolean => {
  const { resourceNames } = rule;
  const named = Array.isArray(resourceNames) && resourceNames.length > 0;
  if (named && (name === undefined || !resourceNames.includes(name))) return false;
  return has(rule.verbs, verb) && has(rule.apiGroups, group) && has(rule.resources, resource);
};

/** One question for all rights of a namespace, where asking about each of thousands of objects would take thousands. */
async function grantedIn(client: KubeClient, namespace: string, signal: AbortSignal): Promise<Granted | Problem> {
  const question: ReviewObject = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectRulesReview',
    metadata: {},
    spec: { namespace },
  };
  const answer = await client.create(question, { fieldManager: managers.objects, signal });
  if (answer.type !== 'created')
    return { reason: 'ApiUnavailable', message: 'message' in answer ? answer.message : 'no answer' };
  const status = isObject(answer.object.status) ? answer.object.status : {};
  const rules = Array.isArray(status.resourceRules) ? status.resourceRules.filter(isObject) : [];
  return { rules, complete: status.incomplete !== true };
}

/** Where the rights to cluster-scoped objects are asked about: they are the same everywhere. */
const anywhere = 'default';
/** How many names are asked about one by one when the rules can not be listed. */
const mostAsked = 50;

/** Names for which a right is missing; undefined when it is there for all that is needed. */
async function missingFor(
  client: KubeClient,
  right: NeededRight,
  { rules, complete }: Granted,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  if (rules.some((rule) => gives(rule, right, undefined))) return undefined;
  const open = right.names.filter((name) => !rules.some((rule) => gives(rule, right, name)));
  if (right.names.length > 0 && open.length === 0) return undefined;
  if (complete) return open;
  if ((await review(client, right, signal)) === 'allowed') return undefined;
  const denied: string[] = [];
  for (const name of open.slice(0, mostAsked))
    if ((await review(client, { ...right, name }, signal)) !== 'allowed') denied.push(name);
  return denied.length === 0 && right.names.length > 0 ? undefined : denied;
}

function missing(right: NeededRight, denied: readonly string[]): Problem {
  const few = `: ${denied.slice(0, 5).join(', ')}${denied.length > 5 ? ` and ${denied.length - 5} more` : ''}`;
  return {
    reason: 'AccessMissing',
    message: `the executor's account may not ${describe(right)}${denied.length > 0 ? few : ''}`,
    remedy: 'deliver unit 10-system of the same commit, which carries the rules, or grant them',
  };
}

/** Every right that is missing, with the names that it is missing for. */
export async function missingRights(
  client: KubeClient,
  rights: readonly NeededRight[],
  signal: AbortSignal,
): Promise<Problem[]> {
  const everything = await review(client, { verb: '*', group: '*', resource: '*' }, signal);
  if (everything === 'allowed') return [];
  const problems: Problem[] = [];
  const places = Map.groupBy(rights, ({ namespace }) => namespace ?? anywhere);
  await eachLimited([...places], atOnce, async ([namespace, there]) => {
    const granted = await grantedIn(client, namespace, signal);
    if ('reason' in granted) {
      problems.push(granted);
      return;
    }
    for (const right of there) {
      const denied = await missingFor(client, right, granted, signal);
      if (denied !== undefined) problems.push(missing(right, denied));
    }
  });
  return problems;
}
