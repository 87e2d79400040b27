import picocolors from 'picocolors';
import type { Place } from './place.ts';

/** Who carries what is published. */
export type QuickstartCourier = 'none' | 'flux';

/** What is where, and what to try next. `address` is the one that the application has. */
export function closingWords(place: Place, courier: QuickstartCourier, address: string): string {
  const { bold, cyan } = picocolors;
  const command = (text: string): string => cyan(text);
  // Publishing is the push that Flux waits for; without a courier somebody delivers.
  const [carry, follow] =
    courier === 'flux' ? ['', '; keelson status -w'] : [' && keelson deliver', ' && keelson deliver --follow'];
  const flux =
    courier === 'flux'
      ? `
  ${bold('Flux')} carries every push, which takes some fifteen seconds: ${command('kubectl -n flux-system get gitrepositories,kustomizations')}
`
      : '';
  return `
${bold('What is where')}
  specs, in Git        ${place.specs}/clusters/local
  rendered, in Git     ${place.rendered}
  signing key          ${place.keys}/signing.key (its public half is in Secret keelson-trust)
  programs             ${place.programs} (keelson, kubectl, helm, set up for this cluster)

  ${command(`export PATH=${place.programs}:$PATH; cd ${place.specs}`)}
${flux}
${bold('Six things to try')}
  1. Change a plain manifest and watch it travel.
     ${command("sed -i 's/hello from Git/hello again/' clusters/local/manifests/demo/10-base/greeting.yaml && git commit -qam greet")}
     ${command(`keelson plan && keelson publish${follow}`)}
  2. Change what an installed network fixes, and read why it is blocked.
     ${command("sed -i 's/networkStack: ipv4/networkStack: dual_stack/' clusters/local/network.yaml && git commit -qam stack")}
     ${command(`keelson publish${courier === 'flux' ? '; sleep 20' : follow}; kubectl -n kube-system get koi local -o wide`)}
     ${command(`git revert --no-edit HEAD && keelson publish${carry}`)}
  3. Hold a release: nothing of it is written until the annotation goes.
     ${command('kubectl -n keelson-system annotate release manifests-demo keelson.dev/hold=looking && keelson status')}
     ${command('kubectl -n keelson-system annotate release manifests-demo keelson.dev/hold-')}
  4. Change what Git says by hand, and see it undone.
     ${command('kubectl -n demo scale deployment/app --replicas=5; kubectl -n demo get deployment app -w')}
     ${command('kubectl -n demo get events --field-selector reason=DriftRepaired')}
  5. Delete a Service whose address is claimed: the one that takes its place has the same, ${address}.
     ${command('kubectl -n demo delete service web; kubectl -n demo get service web -w')}
     ${command('keelson addresses')}
  6. Watch everything tell its story.
     ${command('keelson status -w')}

${address} leads to the application from nodes and pods of this cluster, and from nowhere else: no speaker of MetalLB announces it.
The network is Ready since sidecars beside its daemons, and packets between its pods, say so: ${command('keelson evidence')}.
Remove all of it with ${command('npm run quickstart -- --down')}.
`;
}
