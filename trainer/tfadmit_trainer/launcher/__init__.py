"""The launcher: process 1 of a training container, around the user's program.

`python3 launcher.pyz -- python train.py` unpacks the code, runs the program in it, keeps its log,
forwards signals, tells the sidecar that it has ended, and ends with the program's exit code.
Standard library only: an image needs nothing but python3. Where nothing is configured it changes
nothing. What comes before the program (cluster, TF_CONFIG, waiting for the others) is
`tfadmit_trainer.run`, which the launcher's child process goes through.

Here belong the steps around a program in a container. Not here: transfers to and from object
stores, which the containers beside it do, nor anything of TensorFlow.
"""
