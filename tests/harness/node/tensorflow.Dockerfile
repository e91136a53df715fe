# What stands in for NVIDIA's TensorFlow image in the tests: TensorFlow for CPUs, from the lock file
# that the training tests use, with the same `python` and `pip` on PATH.
FROM python:3.13-slim
COPY requirements/tensorflow.lock requirements/
RUN pip install --no-cache-dir --require-hashes -r requirements/tensorflow.lock
CMD ["python3"]
