package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

const (
	frameworkLabel   = "trainer.kubeflow.org/framework"
	injectAnnotation = "tfadmit.dev/inject"
	statusAnnotation = "tfadmit.dev/status"
	indexAnnotation  = "batch.kubernetes.io/job-completion-index"
	uidAnnotation    = "jobset.sigs.k8s.io/jobset-uid"
)

type podMutator struct {
	reader  client.Reader
	decoder admission.Decoder
}

// Handle makes a pod the task that it is.
func (m *podMutator) Handle(ctx context.Context, request admission.Request) admission.Response {
	var pod corev1.Pod
	if err := m.decoder.Decode(request, &pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if pod.Labels[frameworkLabel] != "tensorflow" || pod.Annotations[injectAnnotation] == "false" {
		return admission.Allowed("not ours")
	}
	var owner jobset.JobSet
	key := types.NamespacedName{Namespace: request.Namespace, Name: pod.Labels[jobset.JobSetNameKey]}
	if err := m.reader.Get(ctx, key, &owner); err != nil {
		return admission.Denied(fmt.Sprintf("JobSet %s: %v", key, err))
	}
	if uid := pod.Annotations[uidAnnotation]; uid != "" && uid != string(owner.UID) {
		return admission.Denied(fmt.Sprintf("JobSet %s has another uid than %s", key, uid))
	}
	member, err := find(&pod, &owner)
	if err != nil {
		return admission.Denied(err.Error())
	}
	inject(&pod, member)
	changed, err := json.Marshal(&pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, changed)
}

func inject(pod *corev1.Pod, member *task) {
	targets := containers(pod)
	profile, settings := network(targets)
	env := append(member.environment(), settings...)
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[statusAnnotation] = member.status(profile)
	for _, target := range targets {
		present := make(map[string]bool, len(target.Env))
		for _, one := range target.Env {
			present[one.Name] = true
		}
		all := make([]corev1.EnvVar, 0, len(env)+len(target.Env))
		for _, one := range env {
			if !present[one.Name] {
				all = append(all, one)
			}
		}
		target.Env = append(all, target.Env...)
	}
}

func containers(pod *corev1.Pod) []*corev1.Container {
	var all []*corev1.Container
	for index := range pod.Spec.Containers {
		one := &pod.Spec.Containers[index]
		if one.Name == "node" || one.Name == "tensorflow" {
			return []*corev1.Container{one}
		}
		all = append(all, one)
	}
	return all
}

// Network gives the profile and its variables; no pod of the benchmark has a host device.
func network(targets []*corev1.Container) (string, []corev1.EnvVar) {
	for _, target := range targets {
		if count := target.Resources.Limits["nvidia.com/gpu"]; !count.IsZero() {
			return "tcp", []corev1.EnvVar{
				{Name: "NCCL_IB_DISABLE", Value: "1"},
				{Name: "NCCL_SOCKET_IFNAME", Value: "eth0"},
				{Name: "NCCL_DEBUG", Value: "INFO"},
			}
		}
	}
	return "", nil
}
