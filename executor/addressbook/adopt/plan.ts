/**
 * How an address that a Service has already comes under the ledger: a claim that names the address, the address that names the
 * claim, the annotation on the Service, in this order. Pure: what there is in, steps or everything that is in the way out.
 */
import { addressAnnotations } from '../../../constructs/api/addresses.ts';
import { type Digest, digestOf } from '../../../constructs/lib/digest.ts';
import type { IPAddress } from '../../../constructs/lib/ip.ts';
import type { Problem } from '../../../constructs/lib/problems.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Book } from '../book.ts';
import type { BalancedService } from '../pins.ts';
import { addressFor, type Prepared } from './address.ts';
import { claimFor } from './claim.ts';
import { classFor } from './class.ts';
import { pinnedAddress, serviceProblems } from './service.ts';

export interface AdoptRequest {
  readonly namespace: string;
  readonly service: string;
  /** The class whose ranges hold the address, when absent. */
  readonly className?: string;
  /** The name of the Service, when absent. */
  readonly claimName?: string;
}

/** What there is. */
export interface AdoptFacts {
  readonly book: Book;
  /** Every Service of type LoadBalancer, and the one that is asked about whatever it is. */
  readonly services: readonly BalancedService[];
}

export type AdoptStepName = 'claim' | 'address' | 'service';

export interface AdoptStep {
  readonly step: AdoptStepName;
  /** How: made anew, or merged into what is there. */
  readonly write: 'create' | 'merge';
  /** What is written; of what is there already no more than that. */
  readonly object: KubeObject;
  /** It is there already. */
  readonly done: boolean;
  /** What a person reads about it. */
  readonly note: string;
}

export interface AdoptPlan {
  /** Over what is adopted by what, and not over how far it is: the same before, during and after. */
  readonly digest: Digest;
  readonly service: { readonly namespace: string; readonly name: string; readonly uid: string };
  readonly ip: IPAddress;
  readonly className: string;
  readonly claim: { readonly namespace: string; readonly name: string };
  readonly addressName: string;
  readonly steps: readonly AdoptStep[];
  /** What a person should know, and what stops nothing. */
  readonly warnings: readonly string[];
}

export type AdoptDecision =
  | { readonly type: 'plan'; readonly plan: AdoptPlan }
  | { readonly type: 'refused'; readonly problems: readonly Problem[] };

/** @returns a plan, or all problems at once. */
export function planAdoption(facts: AdoptFacts, request: AdoptRequest): AdoptDecision {
  const { book } = facts;
  const { namespace, service: serviceOf } = request;
  const service = facts.services.find((one) => one.namespace === namespace && one.name === serviceOf);
  if (service === undefined) return { type: 'refused', problems: [unknownService(request)] };
  const claim = { namespace, name: request.claimName ?? serviceOf };
  const pinned = pinnedAddress(service);
  const ip = 'ip' in pinned ? pinned.ip : undefined;
  const found = classFor(book, ip, request.className);
  const problems: Problem[] = [
    ...('problem' in pinned ? [pinned.problem] : []),
    ...serviceProblems(facts, service, ip, claim.name),
    ...('problem' in found ? [found.problem] : []),
  ];
  if (ip === undefined || !('name' in found)) return { type: 'refused', problems };
  const wanted = { ip, className: found.name, claim, service };
  const address = addressFor(book, wanted);
  const addressName = address.name;
  const claimed = claimFor(book, wanted, addressName);
  problems.push(...address.problems, ...claimed.problems);
  if (problems.length > 0) return { type: 'refused', problems };
  const digest = digestOf({
    service: { namespace, name: serviceOf, uid: service.uid },
    ip: ip.text,
    className: found.name,
    claim,
    addressName,
  });
  const annotated = service.claim === claim.name;
  const steps: AdoptStep[] = [
    stepOf('claim', claimed),
    stepOf('address', address),
    {
      step: 'service',
      write: 'merge',
      object: {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: serviceOf, namespace, annotations: { [addressAnnotations.claim]: claim.name } },
      },
      done: annotated,
      note: annotated ? 'names the claim already' : 'is annotated with the claim',
    },
  ];
  const identity = { namespace, name: serviceOf, uid: service.uid };
  const warnings = [...('warnings' in pinned ? pinned.warnings : []), ...address.warnings];
  return {
    type: 'plan',
    plan: { digest, service: identity, ip, className: found.name, claim, addressName, steps, warnings },
  };
}

const unknownService = ({ namespace, service }: AdoptRequest): Problem => ({
  reason: 'ServiceNotAdoptable',
  object: `Service ${namespace}/${service}`,
  message: 'there is no such Service',
  remedy: 'correct the name, or name its namespace with --namespace',
});

const stepOf = (step: AdoptStepName, { write, object, done, note }: Prepared): AdoptStep => ({
  step,
  write,
  object,
  done,
  note,
});
