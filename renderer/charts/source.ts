import { admitUrl } from '../http/address.ts';
import { parseOciUrl, type Reference } from '../oci/reference.ts';

export type ChartSource =
  | { readonly kind: 'https'; readonly url: string }
  | { readonly kind: 'oci'; readonly ref: Reference };

export type ChartSourceOutcome =
  | { readonly ok: true; readonly source: ChartSource }
  | {
      readonly ok: false;
      readonly reason: 'ChartSourceInvalid' | 'ChartHostNotAllowed';
      readonly message: string;
      readonly remedy: string;
    };

const forms = 'give https://<host>/<path>.tgz or oci://<host>/<repository>[:<tag>]';

function invalid(message: string, remedy = forms): ChartSourceOutcome {
  return { ok: false, reason: 'ChartSourceInvalid', message, remedy };
}

function notAllowed(host: string): ChartSourceOutcome {
  return {
    ok: false,
    reason: 'ChartHostNotAllowed',
    message: `charts from '${host}' are not allowed`,
    remedy: `add '${host}' to spec.allow.chartHosts in cluster.yaml`,
  };
}

/** Admission of an address by the rules of the HTTP client: its scheme, and whether the list names its host. */
function admitted(url: string, host: string, allowedHosts: readonly string[]): ChartSourceOutcome | undefined {
  const outside = admitUrl(url, [host], 'spec.allow.chartHosts');
  if (!outside.ok) return invalid(outside.failure.message, outside.failure.remedy);
  return admitUrl(url, allowedHosts, 'spec.allow.chartHosts').ok ? undefined : notAllowed(host);
}

/** What a chart source means and whether it may be used; decided before any connection and before the cache is read. */
export function checkChartSource(text: string, allowedHosts: readonly string[]): ChartSourceOutcome {
  if (text.startsWith('oci://')) {
    const ref = parseOciUrl(text);
    if (ref === undefined) return invalid('not an OCI repository reference');
    return (
      admitted(`https://${ref.registry}`, ref.registry, allowedHosts) ?? { ok: true, source: { kind: 'oci', ref } }
    );
  }
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) return invalid('neither an https URL nor an oci reference');
  const url = new URL(text);
  const refusal = admitted(text, url.host, allowedHosts);
  if (refusal !== undefined) return refusal;
  if (url.search !== '' || url.hash !== '') return invalid('the URL has a query or a fragment');
  if (!url.pathname.endsWith('.tgz')) return invalid('the URL does not end in .tgz');
  return { ok: true, source: { kind: 'https', url: text } };
}
