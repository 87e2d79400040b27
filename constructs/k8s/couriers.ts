/** Annotations by which Flux and Argo CD leave an object in the cluster when it leaves the tree. */
export const keptByCouriers = {
  'argocd.argoproj.io/sync-options': 'Prune=false,Delete=false',
  'kustomize.toolkit.fluxcd.io/prune': 'disabled',
} as const;

/**
 * The same for objects that people annotate to hold, pin or delete them. Flux takes over what `kubectl annotate` wrote and
 * then drops what Git does not name; with `Merge` it keeps what was added, and enforces what Git names as before.
 */
export const annotatedByPeople = { ...keptByCouriers, 'kustomize.toolkit.fluxcd.io/ssa': 'Merge' } as const;
