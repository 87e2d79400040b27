/** The parts of Flux that a cluster runs: one fetches sources, the other applies what is in them. */
export const fluxTools = ['source-controller', 'kustomize-controller'] as const;
export type FluxTool = (typeof fluxTools)[number];
