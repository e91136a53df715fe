"""Complete trainings that run as they are: `python -m tfadmit_trainer.examples.cifar10`."""
