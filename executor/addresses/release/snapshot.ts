/** What a release of the ledger has to know of the cluster before it is accepted. */
import { addressesApiVersion } from '../../../constructs/api/addresses.ts';
import { metallbGroup, metallbProvisioner } from '../../../constructs/api/metallb.ts';
import { type IPBlock, readIPRange } from '../../../constructs/lib/ip.ts';
import { type JsonObject, type JsonValue, objectOf } from '../../../constructs/lib/json.ts';
import type { Problem } from '../../../constructs/lib/problems.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { KubeObject } from '../../kube/types.ts';
import { withoutManagers } from '../client-api.ts';
import { readLedgerObject } from '../objects.ts';
import type { Giver, LedgerSnapshot } from './admit.ts';

const blocksIn = (addresses: JsonValue | undefined): IPBlock[] =>
  (Array.isArray(addresses) ? addresses : []).flatMap((text) => readIPRange(String(text)) ?? []);

function giverOf({ kind, metadata, spec }: KubeObject): Giver | undefined {
  const { name = '', namespace } = metadata;
  const said: JsonObject = spec ?? {};
  if (kind === 'IPAddressPool') {
    const place = namespace === undefined ? {} : { namespace };
    return { kind, ...place, name, blocks: blocksIn(said.addresses) };
  }
  if (said.provisioner !== metallbProvisioner) return undefined;
  return { kind: 'IPAddressClass', name, blocks: blocksIn(objectOf(said.parameters).addresses) };
}

/** Lists addresses, classes and pools; a kind that the cluster does not know has none. */
export async function takeLedger(
  client: KubeClient,
  signal: AbortSignal,
): Promise<{ snapshot: LedgerSnapshot; problems: Problem[] }> {
  const problems: Problem[] = [];
  const list = async (apiVersion: string, kind: string): Promise<readonly KubeObject[]> => {
    const listed = await client.list({ apiVersion, kind }, { signal, transform: withoutManagers });
    if (listed.type === 'listed') return listed.items;
    if (listed.type !== 'kindAbsent')
      problems.push({
        reason: listed.type === 'unavailable' ? 'ApiUnavailable' : 'ReadFailed',
        message: listed.message,
        object: kind,
      });
    return [];
  };
  const [addresses, classes, pools] = await Promise.all([
    list(addressesApiVersion, 'IPAddress'),
    list(addressesApiVersion, 'IPAddressClass'),
    list(`${metallbGroup}/v1beta1`, 'IPAddressPool'),
  ]);
  const views = addresses.map((object) => readLedgerObject(object)).filter((view) => view?.kind === 'IPAddress');
  const givers = [...classes, ...pools].flatMap((object) => giverOf(object) ?? []);
  return { snapshot: { addresses: views, givers }, problems };
}
