import { ageColumn, commonConditions, type Kind, messageColumn, readyColumns } from './kind.ts';
import { installationSpec } from './kubeovn-installation-spec.ts';
import { installationStatus } from './kubeovn-installation-status.ts';

export const networkGroup = 'network.keelson.dev';

export const kubeOVNInstallationKind: Kind = {
  group: networkGroup,
  version: 'v1alpha1',
  kind: 'KubeOVNInstallation',
  plural: 'kubeovninstallations',
  singular: 'kubeovninstallation',
  shortNames: ['koi'],
  scope: 'Namespaced',
  description: 'A Kube-OVN network: which parts, which version, where, and how it is changed.',
  spec: installationSpec,
  status: installationStatus,
  rules: [
    {
      rule: 'self.metadata.name.size() <= 52',
      message: 'the name must have at most 52 characters, because names are made from it',
    },
  ],
  columns: [
    { name: 'Mode', type: 'string', jsonPath: '.spec.mode' },
    { name: 'Version', type: 'string', jsonPath: '.spec.version' },
    { name: 'Observed', type: 'string', jsonPath: '.status.observedVersion' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    ...readyColumns,
    messageColumn,
    ageColumn,
  ],
  conditionTypes: [
    ...commonConditions,
    { type: 'WorkloadsReady', meaning: 'every Deployment, StatefulSet, DaemonSet, Job, claim and CRD is rolled out' },
    { type: 'OVNDBReady', meaning: 'both databases were observed healthy on all expected members' },
    { type: 'NorthdReady', meaning: 'exactly one northd is active, the others stand by, all are connected' },
    { type: 'DataPlaneReady', meaning: 'OVS and ovn-controller were observed healthy on every node' },
    { type: 'NetworkReady', meaning: 'the network probe passed on every node and family' },
    { type: 'HCPReady', meaning: 'the other half of the pair was observed and fits' },
    { type: 'TopologyRecorded', meaning: 'the observed members are those of the retained record' },
    { type: 'Degraded', meaning: 'something works with less than it should' },
  ],
};
