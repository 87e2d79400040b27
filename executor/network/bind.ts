/** The values that only the cluster knows: the installation that owns an object, and its UID. Pure. */
import { networkApiVersion } from '../../constructs/api/constants.ts';
import type { BindValue } from '../apply/bind.ts';
import { installationKind, type LiveInstallation } from './snapshot.ts';

/** Binds what the index of a network payload marks. Kinds that need a retained topology are not bound before there is one. */
export function bindNetwork(installation: LiveInstallation | undefined): BindValue {
  return (what) => {
    if (installation === undefined) return { problem: 'the installation does not exist, so its UID is not known' };
    switch (what) {
      case 'owner':
        return {
          value: [
            {
              apiVersion: networkApiVersion,
              kind: installationKind,
              name: installation.object.metadata.name ?? '',
              uid: installation.uid,
              controller: true,
              blockOwnerDeletion: false,
            },
          ],
        };
      case 'uidLabels':
      case 'installationUID':
        return { value: installation.uid };
      default:
        return { problem: `'${what}' is known only from a retained topology, and none is recorded` };
    }
  };
}
