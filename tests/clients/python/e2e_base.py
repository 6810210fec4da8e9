"""Stands in for kubernetes.e2e_test.base, which the source distribution lacks but its tests import."""

from kubernetes.client.configuration import Configuration
from kubernetes.config import kube_config


def get_e2e_configuration():
    configuration = Configuration()
    kube_config.load_kube_config(client_configuration=configuration)
    return configuration
