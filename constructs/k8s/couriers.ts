/** Annotations by which Flux and Argo CD leave an object in the cluster when it leaves the tree. */
export const keptByCouriers = {
  'argocd.argoproj.io/sync-options': 'Prune=false,Delete=false',
  'kustomize.toolkit.fluxcd.io/prune': 'disabled',
} as const;
