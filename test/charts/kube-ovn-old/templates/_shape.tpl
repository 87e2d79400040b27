{{/* Answers of the older shape: one mode, RAFT or standalone by MASTER_NODES alone, files on the nodes. */}}

{{- define "kubeovn.renderControlPlane" -}}true{{- end -}}
{{- define "kubeovn.renderDataPlane" -}}true{{- end -}}
{{- define "kubeovn.renderFullOnly" -}}true{{- end -}}
{{- define "kubeovn.hosted" -}}{{- end -}}

{{- define "kubeovn.centralNamespace" -}}{{ .Values.namespace }}{{- end -}}
{{- define "kubeovn.centralAccount" -}}ovn-ovs{{- end -}}
{{- define "kubeovn.leadersDiffer" -}}true{{- end -}}
{{- define "kubeovn.memberList" -}}{{- include "kubeovn.centralIPs" . -}}{{- end -}}
{{- define "kubeovn.centralReplicas" -}}{{ include "kubeovn.nodeCount" . }}{{- end -}}

{{- define "kubeovn.databaseEnv" }}
- name: OVN_DB_IPS
  value: {{ include "kubeovn.centralIPs" .root | quote }}
{{- end -}}
{{- define "kubeovn.southboundPortEnv" -}}{{- end -}}
{{- define "kubeovn.controllerEnv" -}}{{- end -}}
{{- define "kubeovn.controllerArgs" -}}{{- end -}}
{{- define "kubeovn.controllerReplicas" -}}{{ include "kubeovn.nodeCount" . }}{{- end -}}
{{- define "kubeovn.tlsEnv" -}}{{- end -}}
{{- define "kubeovn.addedControllerRules" -}}{{- end -}}

{{- define "kubeovn.centralScheduling" -}}
nodeSelector:
  kubernetes.io/os: linux
tolerations:
  {{- include "kubeovn.tolerations" . | nindent 2 }}
{{- end -}}
{{- define "kubeovn.centralFiles" -}}
- name: host-config-ovn
  hostPath:
    path: {{ .Values.OVN_DIR }}
{{- end -}}
{{- define "kubeovn.centralStrategy" -}}
type: RollingUpdate
rollingUpdate:
  maxSurge: 0
  maxUnavailable: 1
{{- end -}}
{{- define "kubeovn.guardCentralFiles" -}}{{- end -}}
{{- define "kubeovn.centralServiceAnnotations" -}}{{- end -}}
{{- define "kubeovn.centralServiceType" -}}{{- end -}}
{{- define "kubeovn.centralNodePort" -}}{{- end -}}
