import type { Cluster } from '../../constructs/api/cluster.ts';
import { courierRefusals } from '../../constructs/couriers/repository.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { problemAt, type SourceDocument } from './source.ts';

/** Settings by which the courier that `cluster.yaml` names could never carry anything. */
export const courierProblems = (cluster: Cluster, document: SourceDocument): Problem[] =>
  courierRefusals(cluster.spec.delivery).map(({ path, ...refusal }) =>
    problemAt(document, ['spec', 'delivery', ...path], refusal),
  );
