/** What may be adopted: objects that are there, that the selector names, and that nobody else answers for. Pure. */
import { annotations, labels } from '../../constructs/api/constants.ts';
import type { InstallationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import { parseImageRef } from '../../constructs/lib/imageref.ts';
import { deepEqual, type JsonValue } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { describeRef, type KubeObject, uidOf } from '../kube/types.ts';
import { type Item, itemRef } from './items.ts';
import { foreignOwner } from './ownership.ts';

type Selector = NonNullable<NonNullable<InstallationSpec['adoption']>['selector']>;

/** What the domain says of an adoption. */
export interface AdoptionRules {
  /** Ids of everything that must be there and is taken over. */
  readonly ids: ReadonlySet<string>;
  /** Namespace of the installation; objects elsewhere are not adopted, those of cluster scope are. */
  readonly namespace: string;
  readonly selector: Selector;
  /** Field managers whose fields may be taken over. */
  readonly takeManagers: readonly string[];
  readonly installationUID: string;
  /** Version that the payload renders: an image of it may be named by tag in the cluster and by digest in the payload. */
  readonly version: string | undefined;
}

type Expression = NonNullable<Selector['matchExpressions']>[number];

function meets({ key, operator, values = [] }: Expression, found: Readonly<Record<string, string>>): boolean {
  const value = Object.hasOwn(found, key) ? found[key] : undefined;
  switch (operator) {
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
  }
}

/** Whether labels match a selector, as Kubernetes compares them. */
export function matchesSelector(selector: Selector, found: Readonly<Record<string, string>>): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector;
  const same = Object.entries(matchLabels).every(([key, value]) => Object.hasOwn(found, key) && found[key] === value);
  return same && matchExpressions.every((expression) => meets(expression, found));
}

const selectorText = ({ matchLabels = {}, matchExpressions = [] }: Selector): string =>
  [
    ...Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`),
    ...matchExpressions.map(({ key, operator, values = [] }) => `${key} ${operator} ${values.join(',')}`.trim()),
  ].join(', ');

/**
 * Everything that keeps an object from being adopted; empty when nothing does. `known` is the UID under which an adoption
 * that was cut off had begun with it: its own marks are no other installation's then.
 */
export function adoptionProblems(
  item: Item,
  intent: KubeObject,
  live: KubeObject | undefined,
  rules: AdoptionRules,
  known: string | undefined,
): Problem[] {
  const object = describeRef(itemRef(item));
  const say = (message: string, remedy: string, path?: string): Problem => ({
    reason: 'AdoptionRefused',
    message,
    object,
    remedy,
    ...(path === undefined ? {} : { path }),
  });
  if (live === undefined)
    return [
      say(
        'it does not exist, and everything that the payload renders must be there to be adopted',
        'install it first, or correct the spec so that it renders what is there',
      ),
    ];
  const { metadata } = live;
  const found = metadata.labels ?? {};
  const problems: Problem[] = [];
  if (known !== undefined && known !== uidOf(live))
    return [
      say(`its adoption began with UID ${known}, and UID ${uidOf(live)} has its name now`, 'look who replaced it'),
    ];
  if (item.entry.namespace !== undefined && item.entry.namespace !== rules.namespace)
    problems.push(
      say(`it is in namespace ${item.entry.namespace}, the installation in ${rules.namespace}`, 'adopt it elsewhere'),
    );
  if (known === undefined && !matchesSelector(rules.selector, found))
    problems.push(
      say(
        `its labels do not match the selector (${selectorText(rules.selector)})`,
        'label it once you are sure that it belongs to this installation, or correct spec.adoption.selector',
        'metadata.labels',
      ),
    );
  if (typeof metadata.deletionTimestamp === 'string')
    problems.push(
      say(`it is being deleted since ${metadata.deletionTimestamp}`, 'wait until it is gone, and install it'),
    );
  const hold = metadata.annotations?.[annotations.hold];
  if (hold !== undefined) problems.push({ reason: 'ObjectHeld', message: `it is held: ${hold}`, object });
  const foreign = foreignOwner(item, intent, live);
  if (foreign?.verdict === 'refused') problems.push(foreign.problem);
  const owner = [labels.installationUID, labels.release].find((label) => found[label] !== undefined);
  if (
    owner !== undefined &&
    !(known !== undefined && (found[labels.installationUID] ?? rules.installationUID) === rules.installationUID)
  )
    problems.push(
      say(
        `label ${owner} says that it belongs to ${String(found[owner])}`,
        'take it out of that installation first',
        `metadata.labels.${owner}`,
      ),
    );
  return problems;
}

const bare = (version: string): string => version.replace(/^v/, '');
const lastOf = (repository: string): string => repository.slice(repository.lastIndexOf('/') + 1);

/** The reference in a value that is one, or that is a flag with one behind its equals sign; with what stands before it. */
function referenceIn(value: string): { readonly before: string; readonly text: string } {
  const [, before = '', text = value] = /^(--?[A-Za-z0-9-]+=)(.+)$/.exec(value) ?? [];
  return { before, text };
}

function isSameReference(live: string, wanted: string, version: string | undefined): boolean {
  const [a, b] = [referenceIn(live), referenceIn(wanted)];
  const [there, ours] = [parseImageRef(a.text), parseImageRef(b.text)];
  if (there === undefined || ours?.digest === undefined || a.before !== b.before) return false;
  if (lastOf(there.repository) !== lastOf(ours.repository)) return false;
  if (there.digest !== undefined) return there.digest === ours.digest;
  return there.tag !== undefined && version !== undefined && bare(there.tag) === bare(version);
}

/**
 * Whether two values differ in nothing but how they name images: by the same digest, or an image of the same name whose tag is
 * the version that the payload renders by digest. This is the one difference that an adoption may find.
 */
export function isSameButImages(
  live: JsonValue | undefined,
  wanted: JsonValue | undefined,
  version: string | undefined,
): boolean {
  if (typeof live === 'string' && typeof wanted === 'string')
    return live === wanted || isSameReference(live, wanted, version);
  if (!Array.isArray(live) || !Array.isArray(wanted)) return deepEqual(live, wanted);
  return live.length === wanted.length && wanted.every((value, n) => isSameButImages(live[n], value, version));
}
