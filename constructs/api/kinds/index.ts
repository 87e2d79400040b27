import { ipAddressKind } from './ipaddress.ts';
import { ipAddressClaimKind } from './ipaddressclaim.ts';
import { ipAddressClassKind } from './ipaddressclass.ts';
import { type Kind, kindApiVersion } from './kind.ts';
import { kubeOVNMemberRemovalApprovalKind } from './kubeovn-approval.ts';
import { kubeOVNInstallationKind } from './kubeovn-installation.ts';
import { kubeOVNRecoveryRequestKind } from './kubeovn-recovery.ts';
import { releaseKind } from './release.ts';

/** Every kind that we define, by name. */
export const kinds: readonly Kind[] = [
  kubeOVNInstallationKind,
  kubeOVNMemberRemovalApprovalKind,
  kubeOVNRecoveryRequestKind,
  releaseKind,
  ipAddressClassKind,
  ipAddressKind,
  ipAddressClaimKind,
];

/** Kinds that a person creates with own credentials; in Git they are refused. `group/Kind`. */
export const refusedInGit: readonly string[] = [
  'network.keelson.dev/KubeOVNMemberRemovalApproval',
  'network.keelson.dev/KubeOVNRecoveryRequest',
  'local.sdn.cozystack.io/IPAddress',
  'local.sdn.cozystack.io/IPAddressClaim',
];

export const findKind = (apiVersion: string, kind: string): Kind | undefined =>
  kinds.find((k) => k.kind === kind && kindApiVersion(k) === apiVersion);
