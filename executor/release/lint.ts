/** Objects that would do harm, or that the engine could not keep track of. Pure. */
import { annotations, labels, networkNamespace } from '../../constructs/api/constants.ts';
import { refusedInGit } from '../../constructs/api/kinds/index.ts';
import { groupKindOf } from '../../constructs/api/plan.ts';
import { isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { type Item, itemRef } from '../apply/items.ts';
import { isRuntime } from '../apply/runtime.ts';
import { describeRef, type KubeObject } from '../kube/types.ts';

const list = (value: JsonValue | undefined): JsonValue[] => (Array.isArray(value) ? value : []);
const objects = (value: JsonValue | undefined): JsonObject[] => list(value).filter(isObject);

/** Every object must say whose it is: what is live is found by these marks. */
export function lintMarks(items: readonly Item[], release: string): Problem[] {
  return items.flatMap((item): Problem[] => {
    if (item.entry.absent) return [];
    const { metadata } = item.object;
    const wrong = [
      metadata.labels?.[labels.release] === release ? '' : `label ${labels.release} is not '${release}'`,
      metadata.annotations?.[annotations.id] === item.id ? '' : `annotation ${annotations.id} is not '${item.id}'`,
    ].filter((text) => text !== '');
    if (wrong.length === 0) return [];
    return [
      {
        reason: 'PayloadIntegrity',
        message: wrong.join('; '),
        object: describeRef(itemRef(item)),
        remedy: 'render the cluster again with this version of keelson',
      },
    ];
  });
}

/** Claims, addresses and placeholders live in the cluster alone: a payload that names them would fight with the ledger. */
export function lintRuntime(items: readonly Item[]): Problem[] {
  return items
    .filter(({ entry, object }) => refusedInGit.includes(groupKindOf(entry)) || isRuntime(object.metadata))
    .map((item) => ({
      reason: 'RuntimeObject',
      message: 'it is kept by whoever works in the cluster, and no payload writes or removes it',
      object: describeRef(itemRef(item)),
      remedy: 'take it out of Git, and render the cluster again with this version of keelson',
    }));
}

/** Groups whose objects Keelson must be able to write while the webhook's own pods are down. */
const vitalGroups = new Set(['*', '', 'apps', 'coordination.k8s.io', 'rbac.authorization.k8s.io', 'keelson.dev']);

function touchesVital(webhook: JsonObject): boolean {
  return objects(webhook.rules).some((rule) => list(rule.apiGroups).some((group) => vitalGroups.has(String(group))));
}

/** Whether a namespaceSelector keeps a namespace out by its name. */
function excludes(webhook: JsonObject, namespace: string): boolean {
  const selector = isObject(webhook.namespaceSelector) ? webhook.namespaceSelector : {};
  return objects(selector.matchExpressions).some((expression) => {
    if (expression.key !== 'kubernetes.io/metadata.name') return false;
    const named = list(expression.values).includes(namespace);
    return expression.operator === 'NotIn' ? named : expression.operator === 'In' && !named;
  });
}

/** Webhooks that fail closed must leave our namespace and kube-system alone, else their outage could not be repaired. */
export function lintWebhooks(items: readonly Item[], ownNamespace: string): Problem[] {
  return items.flatMap((item): Problem[] => {
    const { kind, absent } = item.entry;
    if (absent || (kind !== 'ValidatingWebhookConfiguration' && kind !== 'MutatingWebhookConfiguration')) return [];
    return objects(item.object.webhooks).flatMap((webhook, n): Problem[] => {
      if (webhook.failurePolicy === 'Ignore' || !touchesVital(webhook)) return [];
      const open = [ownNamespace, networkNamespace].filter((namespace) => !excludes(webhook, namespace));
      if (open.length === 0) return [];
      return [
        {
          reason: 'WebhookUnsafe',
          message: `webhook ${String(webhook.name)} fails closed and covers namespace ${open.join(' and ')}`,
          object: describeRef(itemRef(item)),
          path: `/webhooks/${n}/namespaceSelector`,
          remedy: 'exclude these namespaces by kubernetes.io/metadata.name, or set failurePolicy: Ignore',
        },
      ];
    });
  });
}

/** A CRD must keep every version in which objects may be stored, and its scope. `live` is the CRD as it is now. */
export function lintDefinition(item: Item, live: KubeObject): Problem[] {
  const versions = new Set(objects(item.object.spec?.versions).map((version) => version.name));
  const stored = list(isObject(live.status) ? live.status.storedVersions : undefined);
  const dropped = stored.filter((version) => !versions.has(version));
  const object = describeRef(itemRef(item));
  const problems: Problem[] = [];
  if (dropped.length > 0)
    problems.push({
      reason: 'StoredVersionDropped',
      message: `versions ${dropped.join(', ')} are still in status.storedVersions`,
      object,
      path: '/spec/versions',
      remedy: 'migrate the stored objects first, then remove the version',
    });
  if (live.spec?.scope !== undefined && item.object.spec?.scope !== live.spec.scope)
    problems.push({
      reason: 'ImmutableField',
      message: `scope would change from ${String(live.spec.scope)} to ${String(item.object.spec?.scope)}`,
      object,
      path: '/spec/scope',
    });
  return problems;
}
