{{/* Answers of the newer shape: installation modes, standalone central, hosted central, TLS settings. */}}

{{- define "kubeovn.mode" -}}
{{- if not (has .Values.installMode (list "full" "controlPlaneOnly" "dataPlaneOnly")) -}}
{{- fail (printf "installMode is %q; use full, controlPlaneOnly or dataPlaneOnly" .Values.installMode) -}}
{{- end -}}
{{- .Values.installMode -}}
{{- end -}}
{{- define "kubeovn.renderControlPlane" -}}{{- if ne (include "kubeovn.mode" .) "dataPlaneOnly" -}}true{{- end -}}{{- end -}}
{{- define "kubeovn.renderDataPlane" -}}{{- if ne (include "kubeovn.mode" .) "controlPlaneOnly" -}}true{{- end -}}{{- end -}}
{{- define "kubeovn.renderFullOnly" -}}{{- if eq (include "kubeovn.mode" .) "full" -}}true{{- end -}}{{- end -}}

{{- define "kubeovn.hosted" -}}{{- if (index .Values "ovn-central").hcp.enabled -}}true{{- end -}}{{- end -}}
{{- define "kubeovn.single" -}}
{{- if not (has .Values.OVN_CENTRAL_MODE (list "cluster" "single")) -}}
{{- fail (printf "OVN_CENTRAL_MODE is %q; use cluster or single" .Values.OVN_CENTRAL_MODE) -}}
{{- end -}}
{{- if eq .Values.OVN_CENTRAL_MODE "single" -}}true{{- end -}}
{{- end -}}

{{- define "kubeovn.centralNamespace" -}}
{{- if include "kubeovn.hosted" . -}}{{ (index .Values "ovn-central").hcp.namespace }}{{- else -}}{{ .Values.namespace }}{{- end -}}
{{- end -}}
{{- define "kubeovn.centralAccount" -}}{{- if include "kubeovn.hosted" . -}}ovn-central{{- else -}}ovn-ovs{{- end -}}{{- end -}}
{{- define "kubeovn.leadersDiffer" -}}{{- if not (include "kubeovn.single" .) -}}true{{- end -}}{{- end -}}

{{/* What NODE_IPS of the central pods says: RAFT members, or nothing for a standalone server. */}}
{{- define "kubeovn.memberList" -}}
{{- if include "kubeovn.hosted" . -}}
{{- $hcp := (index .Values "ovn-central").hcp -}}
{{- $names := list -}}
{{- range $n := until (int $hcp.replicas) -}}{{- $names = append $names (printf "ovn-central-%d.ovn-central.%s.svc" $n $hcp.namespace) -}}{{- end -}}
{{- join "," $names -}}
{{- else if not (include "kubeovn.single" .) -}}{{- include "kubeovn.centralIPs" . -}}{{- end -}}
{{- end -}}
{{- define "kubeovn.centralReplicas" -}}
{{- if include "kubeovn.hosted" . -}}{{ (index .Values "ovn-central").hcp.replicas }}
{{- else if include "kubeovn.single" . -}}1
{{- else -}}{{ include "kubeovn.nodeCount" . }}{{- end -}}
{{- end -}}

{{- define "kubeovn.bracketed" -}}
{{- if and (contains ":" .) (not (hasPrefix "[" .)) -}}[{{ . }}]{{- else -}}{{ . }}{{- end -}}
{{- end -}}
{{/* An address of an external database. The scheme is tcp: whatever ENABLE_SSL says, as in the chart that this one stands for. */}}
{{- define "kubeovn.externalAddress" -}}
{{- $ends := .root.Values.externalOvnCentral -}}
{{- $host := required (printf "externalOvnCentral.%sEndpoint is required with installMode dataPlaneOnly" .db) (index $ends (printf "%sEndpoint" .db)) -}}
tcp:{{ include "kubeovn.bracketed" $host }}:{{ index $ends (printf "%sPort" .db) }}
{{- end -}}
{{- define "kubeovn.databaseAddress" -}}
{{- $hcp := (index .root.Values "ovn-central").hcp -}}
{{- $given := index $hcp (printf "%sAddress" .db) -}}
{{- if and $hcp.enabled $given -}}{{ $given }}
{{- else if eq (include "kubeovn.mode" .root) "dataPlaneOnly" -}}{{ include "kubeovn.externalAddress" . }}
{{- else if $hcp.enabled -}}tcp:ovn-{{ .db }}.{{ $hcp.namespace }}.svc:{{ ternary 6641 6642 (eq .db "nb") }}
{{- end -}}
{{- end -}}

{{/* How a consumer finds the databases: dict "root" $ "dbs" (list "nb" "sb"). */}}
{{- define "kubeovn.databaseEnv" -}}
{{- $root := .root -}}
{{- if or (include "kubeovn.hosted" $root) (eq (include "kubeovn.mode" $root) "dataPlaneOnly") -}}
{{- range .dbs }}
- name: OVN_{{ upper . }}_ADDR
  value: {{ include "kubeovn.databaseAddress" (dict "root" $root "db" .) | quote }}
{{- end }}
{{- else }}
- name: OVN_DB_IPS
  value: {{ include "kubeovn.memberList" $root | quote }}
{{- end }}
{{- end -}}
{{- define "kubeovn.southboundPortEnv" }}
- name: KUBE_OVN_SB_PORT
  value: {{ .Values.externalOvnCentral.sbPort | quote }}
{{- end -}}
{{- define "kubeovn.controllerEnv" }}
- name: KUBE_OVN_TLS_ROTATION_INTERVAL
  value: {{ ternary "0" .Values.networking.KUBE_OVN_TLS_ROTATION_INTERVAL (eq (include "kubeovn.mode" .) "dataPlaneOnly") | quote }}
- name: KUBE_OVN_NB_PORT
  value: {{ .Values.externalOvnCentral.nbPort | quote }}
{{- include "kubeovn.southboundPortEnv" . }}
{{- end -}}
{{- define "kubeovn.controllerArgs" -}}
{{- with (index .Values "kube-ovn-controller").leaderElection }}
{{- if .leaseDuration }}
- --leader-elect-lease-duration={{ .leaseDuration }}
{{- end }}
{{- if .renewDeadline }}
- --leader-elect-renew-deadline={{ .renewDeadline }}
{{- end }}
{{- if .retryPeriod }}
- --leader-elect-retry-period={{ .retryPeriod }}
{{- end }}
{{- end }}
{{- end -}}
{{- define "kubeovn.controllerReplicas" -}}
{{- $given := get (index .Values "kube-ovn-controller") "replicas" -}}
{{- if eq (include "kubeovn.mode" .) "dataPlaneOnly" -}}
{{- $nodes := len (default list (lookup "v1" "Node" "" "").items) -}}
{{- min 2 (default (include "kubeovn.nodeCount" . | int) $nodes) -}}
{{- else -}}
{{- default (include "kubeovn.nodeCount" .) $given -}}
{{- end -}}
{{- end -}}

{{- define "kubeovn.tlsEnv" }}
- name: TLS_MIN_VERSION
  value: {{ .Values.networking.TLS_MIN_VERSION | quote }}
- name: TLS_MAX_VERSION
  value: {{ .Values.networking.TLS_MAX_VERSION | quote }}
- name: TLS_CIPHER_SUITES
  value: {{ join ":" .Values.networking.TLS_CIPHER_SUITES | quote }}
{{- end -}}

{{- define "kubeovn.centralScheduling" -}}
{{- $central := index .Values "ovn-central" -}}
nodeSelector:
  {{- toYaml $central.nodeSelector | nindent 2 }}
tolerations:
  {{- toYaml $central.tolerations | nindent 2 }}
  - key: CriticalAddonsOnly
    operator: Exists
{{- end -}}
{{- define "kubeovn.centralFiles" -}}
{{- if include "kubeovn.single" . -}}
- name: host-config-ovn
  persistentVolumeClaim:
    claimName: {{ default "ovn-central-data" (index .Values "ovn-central").storage.existingClaim }}
{{- else -}}
- name: host-config-ovn
  hostPath:
    path: {{ .Values.OVN_DIR }}
{{- end -}}
{{- end -}}
{{- define "kubeovn.centralStrategy" -}}
{{- if include "kubeovn.single" . -}}
type: Recreate
{{- else -}}
type: RollingUpdate
rollingUpdate:
  maxSurge: 0
  maxUnavailable: 1
{{- end -}}
{{- end -}}
{{/* Files of the databases never move between a node's directory and a claim by an upgrade. */}}
{{- define "kubeovn.guardCentralFiles" -}}
{{- $live := lookup "apps/v1" "Deployment" .Values.namespace "ovn-central" -}}
{{- if $live -}}
{{- range $live.spec.template.spec.volumes -}}
{{- if eq .name "host-config-ovn" -}}
{{- if ne (hasKey . "persistentVolumeClaim") (eq (include "kubeovn.single" $) "true") -}}
{{- fail "OVN_CENTRAL_MODE can not change on a running installation: the databases would start empty" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "kubeovn.centralServiceAnnotations" -}}
{{- if eq (index .Values "ovn-central").service.type "LoadBalancer" }}
annotations:
  metallb.universe.tf/allow-shared-ip: kube-ovn-central
{{- end }}
{{- end -}}
{{- define "kubeovn.centralServiceType" -}}
{{- $service := (index .Values "ovn-central").service -}}
{{- if include "kubeovn.hosted" . }}
type: {{ (index .Values "ovn-central").hcp.service.type }}
{{- else }}
type: {{ $service.type }}
{{- if eq $service.type "LoadBalancer" }}
loadBalancerIP: {{ required "ovn-central.service.loadBalancerIP is required with type LoadBalancer" $service.loadBalancerIP }}
{{- end }}
{{- with $service.externalTrafficPolicy }}
externalTrafficPolicy: {{ . }}
{{- end }}
{{- end }}
{{- end -}}
{{- define "kubeovn.centralNodePort" -}}
{{- $hcp := (index .root.Values "ovn-central").hcp -}}
{{- if and $hcp.enabled (eq $hcp.service.type "NodePort") .node -}}{{ index $hcp.service .node }}{{- end -}}
{{- end -}}

{{/* What the controller of this shape may do beyond the older one. */}}
{{- define "kubeovn.addedControllerRules" }}
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [kube-ovn-tls]
  verbs: [update]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create, delete, patch, update]
- apiGroups: [monitoring.coreos.com]
  resources: [servicemonitors]
  verbs: [create, delete, get, list, patch, update, watch]
- apiGroups: [metallb.io]
  resources: [servicel2statuses]
  verbs: [get, list, watch]
{{- end -}}
