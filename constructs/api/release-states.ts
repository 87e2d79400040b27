/** States of a Release. Apart from its kind: who counts them needs no schemas. */
export const releaseStates = ['Initial', 'Syncing', 'Reconciling', 'Error'] as const;
