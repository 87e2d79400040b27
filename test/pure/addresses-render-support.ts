import type { Tree } from '../../constructs/api/tree.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { isObject } from '../../constructs/lib/json.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import { addressesRenderer } from '../../renderer/addresses/render.ts';
import type { Rendered, RenderOutcome } from '../../renderer/render.ts';
import { type Copy, renderFolder } from './render-support.ts';

/** A cluster folder with a ledger of addresses. */

export const provisioner = 'metallb.drivers.local.sdn.cozystack.io';

/** A class that MetalLB gives addresses for; `more` are further lines of its spec. */
export const classText = (name: string, addresses: readonly string[], more = '', annotations = ''): string =>
  `apiVersion: local.sdn.cozystack.io/v1alpha1
kind: IPAddressClass
metadata:
  name: ${name}
${annotations}spec:
  provisioner: ${provisioner}
  parameters:
    addresses:
${addresses.map((address) => `      - ${JSON.stringify(address)}\n`).join('')}${more}`;

export const publicClass = classText('public', ['203.0.113.0/29', '2001:db8::/126']);

export const writeClasses = (copy: Copy, ...classes: readonly string[]): void =>
  copy.write('addresses.yaml', classes.join('---\n'));

/** Sets `spec.addresses` of cluster.yaml to a text in flow style. */
export function writeSettings(copy: Copy, settings: string): void {
  const text = copy.read('cluster.yaml').replace(/\n {2}addresses: .*\n/, '\n');
  copy.write('cluster.yaml', `${text.trimEnd()}\n  addresses: ${settings}\n`);
}

export const renderLedger = (copy: Copy, previous?: Tree): Promise<RenderOutcome> =>
  renderFolder(copy.folder, {
    domains: [addressesRenderer],
    ...(previous === undefined ? {} : { previous }),
  });

export async function rendered(copy: Copy, previous?: Tree): Promise<Rendered> {
  const outcome = await renderLedger(copy, previous);
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems, null, 2));
  return outcome.rendered;
}

/** The objects of a unit or payload, by file name. */
export const objectsIn = (tree: Tree, folder: string): Map<string, JsonObject> =>
  new Map(
    [...tree].flatMap(([path, bytes]) => {
      if (!path.startsWith(`${folder}/`) || !path.endsWith('.yaml')) return [];
      const value = parseYaml(Buffer.from(bytes).toString(), path).documents[0]?.value;
      return isObject(value) ? [[path.slice(folder.length + 1), value] as const] : [];
    }),
  );
