package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

const (
	port = 12345
	// As the default of tfadmit: a larger TF_CONFIG travels in compact form only.
	maxInline = 32 << 10
)

// A task is one member of a cluster of workers, all of one replicated job.
type task struct {
	index  int
	size   int
	prefix string // of every address, up to the index
	suffix string // and after it
}

func find(pod *corev1.Pod, owner *jobset.JobSet) (*task, error) {
	name := pod.Labels[jobset.ReplicatedJobNameKey]
	for index := range owner.Spec.ReplicatedJobs {
		group := &owner.Spec.ReplicatedJobs[index]
		if group.Name == name && group.Template.Spec.Template.Labels[frameworkLabel] == "tensorflow" {
			return member(pod, owner, group)
		}
	}
	return nil, fmt.Errorf("JobSet %s has no TensorFlow job %q", owner.Name, name)
}

func member(pod *corev1.Pod, owner *jobset.JobSet, group *jobset.ReplicatedJob) (*task, error) {
	index, err := strconv.Atoi(pod.Annotations[indexAnnotation])
	if err != nil {
		return nil, fmt.Errorf("the pod has no completion index: %w", err)
	}
	size := 1
	if completions := group.Template.Spec.Completions; completions != nil {
		size = int(*completions)
	}
	if index >= size {
		return nil, fmt.Errorf("the pod has index %d of %d", index, size)
	}
	subdomain := owner.Name
	if network := owner.Spec.Network; network != nil && network.Subdomain != "" {
		subdomain = network.Subdomain
	}
	return &task{
		index:  index,
		size:   size,
		prefix: fmt.Sprintf("%s-%s-0-", owner.Name, group.Name),
		suffix: fmt.Sprintf(".%s.%s.svc.cluster.local:%d", subdomain, owner.Namespace, port),
	}, nil
}

func (t *task) environment() []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: "TF_TASK_TYPE", Value: "worker"},
		{Name: "TF_TASK_INDEX", Value: strconv.Itoa(t.index)},
		{Name: "TF_NUM_WORKERS", Value: strconv.Itoa(t.size)},
		{Name: "TF_WORKER_PORT", Value: strconv.Itoa(port)},
		{Name: "TFADMIT_CLUSTER", Value: t.compact()},
	}
	if t.inline() {
		hosts := t.hosts(",")
		env = append(env,
			corev1.EnvVar{Name: "TF_WORKER_HOSTS", Value: hosts},
			corev1.EnvVar{Name: "TF_CONFIG", Value: t.config()})
	}
	return env
}

func (t *task) compact() string {
	return fmt.Sprintf(`{"v":1,"worker":["%s{0..%d}%s"]}`, t.prefix, t.size-1, t.suffix)
}

// Inline estimates from above, so that nothing long is built only to be thrown away.
func (t *task) inline() bool {
	return t.size*(len(t.prefix)+len(strconv.Itoa(t.size))+len(t.suffix)+3)+80 <= maxInline
}

func (t *task) hosts(between string) string {
	var text strings.Builder
	text.Grow(t.size * (len(t.prefix) + len(t.suffix) + len(between) + 4))
	for index := range t.size {
		if index > 0 {
			text.WriteString(between)
		}
		text.WriteString(t.prefix)
		text.WriteString(strconv.Itoa(index))
		text.WriteString(t.suffix)
	}
	return text.String()
}

func (t *task) config() string {
	return `{"cluster":{"worker":["` + t.hosts(`","`) +
		`"]},"task":{"type":"worker","index":` + strconv.Itoa(t.index) + `}}`
}

func (t *task) status(profile string) string {
	text, err := json.Marshal(struct {
		V       int    `json:"v"`
		Role    string `json:"role"`
		Index   int    `json:"index"`
		Tasks   int    `json:"tasks"`
		Source  string `json:"source"`
		Inline  bool   `json:"inline"`
		Network string `json:"network,omitempty"`
	}{1, "worker", t.index, t.size, "jobset", t.inline(), profile})
	if err != nil {
		panic(err) // strings and numbers always have a JSON form
	}
	return string(text)
}
