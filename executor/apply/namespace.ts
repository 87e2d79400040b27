import type { NamespaceMissing } from '../kube/outcome.ts';

/** What is wrong with a namespace that takes no object, and what to do; one that is going needs something else than one that never was. */
export function namespaceTrouble({ namespace, terminating }: NamespaceMissing): { message: string; remedy: string } {
  if (terminating)
    return {
      message: `namespace ${namespace} is being deleted`,
      remedy: `it is tried again by itself; look with \`kubectl get namespace ${namespace} -o yaml\` what keeps it from going`,
    };
  return {
    message: `namespace ${namespace} does not exist`,
    remedy: 'put the Namespace into an earlier phase of this release, or create it',
  };
}
