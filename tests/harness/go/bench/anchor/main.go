// Anchor is the webhook that a Go team would write with controller-runtime, for comparison.
//
// The ordinary way: a manager whose cached client watches JobSets, the pod decoded into its type,
// changed, encoded, and the patch computed from the two texts. For the reviews of the benchmark
// its admitted pods are those of tfadmit; it knows nothing that these do not ask for.
package main

import (
	"context"
	"flag"
	"log"
	"net/http"
	"os"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

func main() {
	certificates := flag.String("certificates", "", "folder with tls.crt and tls.key")
	port := flag.Int("port", 0, "port of the webhook")
	kubeconfig := flag.String("config", "", "kubeconfig of the API server with the JobSets")
	noop := flag.Bool("noop", false, "admit every pod as it is, for the cost of the call alone")
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	if err := serve(*certificates, *port, *kubeconfig, *noop); err != nil {
		log.Fatal(err)
	}
}

func serve(certificates string, port int, kubeconfig string, noop bool) error {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(jobset.AddToScheme(scheme))
	utilruntime.Must(trainer.AddToScheme(scheme))
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	options := webhook.Options{Host: "127.0.0.1", Port: port, CertDir: certificates}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 scheme,
		WebhookServer:          webhook.NewServer(options),
		Metrics:                metrics.Options{BindAddress: "127.0.0.1:0"},
		HealthProbeBindAddress: "0",
		MapperProvider:         mapper,
	})
	if err != nil {
		return err
	}
	server := manager.GetWebhookServer()
	pods := &podMutator{reader: manager.GetClient(), decoder: admission.NewDecoder(scheme)}
	var handler admission.Handler = pods
	if noop {
		handler = admission.HandlerFunc(admit)
	}
	server.Register("/mutate/pods", &admission.Webhook{Handler: handler})
	server.Register("/validate/runtimes", &admission.Webhook{Handler: &runtimeValidator{decoder: pods.decoder}})
	ending := ctrl.SetupSignalHandler()
	// Asked for before the start, so that the watch is up when the first review comes.
	if _, err := manager.GetCache().GetInformer(ending, &jobset.JobSet{}); err != nil {
		return err
	}
	server.Register("/readyz", ready(func() bool { return manager.GetCache().WaitForCacheSync(ending) }))
	return manager.Start(ending)
}

func admit(context.Context, admission.Request) admission.Response {
	return admission.Allowed("")
}

func ready(synced func() bool) http.Handler {
	return http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		if !synced() {
			answer.WriteHeader(http.StatusServiceUnavailable)
		}
	})
}

// Mapper knows the one resource that is looked up; the small API server has no discovery.
func mapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	known := meta.NewDefaultRESTMapper(nil)
	known.AddSpecific(
		jobset.GroupVersion.WithKind("JobSet"),
		schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"},
		schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobset"},
		meta.RESTScopeNamespace,
	)
	return known, nil
}
