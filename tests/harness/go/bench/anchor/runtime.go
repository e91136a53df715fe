package main

import (
	"context"
	"net/http"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

type runtimeValidator struct {
	decoder admission.Decoder
}

// Handle refuses a runtime whose tasks could not find each other: one rule of tfadmit's seventeen.
func (v *runtimeValidator) Handle(_ context.Context, request admission.Request) admission.Response {
	var runtime trainer.ClusterTrainingRuntime
	if err := v.decoder.Decode(request, &runtime); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	network := runtime.Spec.Template.Spec.Network
	if network == nil || network.PublishNotReadyAddresses == nil || !*network.PublishNotReadyAddresses {
		return admission.Denied("spec.template.spec.network.publishNotReadyAddresses must be true: " +
			"TensorFlow tasks connect to each other before any pod is ready")
	}
	return admission.Allowed("")
}
