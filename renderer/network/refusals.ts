/** Fields whose parts do not exist in this version, or do not go together: refused by name, so that nobody believes they are at work. */
import type { Cluster } from '../../constructs/api/cluster.ts';
import type { InstallationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import type { Problem } from '../../constructs/lib/problems.ts';

/** What this version cannot render. `place` puts a problem at a field of the specification's file. */
export function refusals(
  spec: InstallationSpec,
  cluster: Cluster,
  place: (path: readonly (string | number)[], problem: Problem) => Problem,
): Problem[] {
  const problems: Problem[] = [];
  if (cluster.spec.fenceAgent.enabled)
    problems.push({
      reason: 'ComponentMissing',
      message: 'fenceAgent.enabled asks for a sidecar that this version of Keelson does not contain',
      file: 'cluster.yaml',
      path: 'spec.fenceAgent.enabled',
      remedy: 'set it to false',
    });
  if (spec.networkProbe !== undefined && spec.mode !== 'centralOnly' && cluster.spec.images.probe === undefined)
    problems.push(
      place(['spec', 'networkProbe', 'image'], {
        reason: 'ProbeImageMissing',
        message: 'an executor that is to ask the network probe has to gather evidence, and cluster.yaml names no probe',
        remedy: 'set spec.images.probe in cluster.yaml',
      }),
    );
  if (spec.networkProbe === undefined && spec.mode !== 'centralOnly' && !cluster.spec.acceptUnverifiedNetwork)
    problems.push(
      place(['spec', 'networkProbe'], {
        reason: 'NetworkUnverified',
        message: 'without a network probe nothing shows that packets arrive, and NetworkReady stays Unknown',
        remedy: 'set networkProbe.image, or acceptUnverifiedNetwork: true in cluster.yaml to accept that',
      }),
    );
  return problems;
}
