import { addressesApiVersion } from '../../../constructs/api/addresses.ts';
import type { JsonObject } from '../../../constructs/lib/json.ts';
import type { ObjectMeta } from '../../kube/types.ts';
import type { SharedObject } from '../../kube/verbs/create.ts';

/** An object of the ledger as it is made. */
export const ledgerObject = (
  kind: 'IPAddress' | 'IPAddressClaim',
  metadata: ObjectMeta,
  spec: JsonObject,
): SharedObject => ({ apiVersion: addressesApiVersion, kind, metadata, spec });
