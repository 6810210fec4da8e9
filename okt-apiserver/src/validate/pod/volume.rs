//! The volumes of a Pod.

use std::collections::BTreeSet;

use super::super::part::CheckedPart;
use super::super::small;
use super::container::check_resource_field;
use crate::causes::Causes;
use crate::rules;

/// The sources of volumes, in the order in which a server looks for them.
const SOURCES: &str = "emptyDir hostPath gitRepo gcePersistentDisk awsElasticBlockStore secret nfs iscsi glusterfs \
    persistentVolumeClaim rbd cinder cephfs flocker downwardAPI fc flexVolume azureFile configMap \
    vsphereVolume photonPersistentDisk portworxVolume azureDisk storageos projected scaleIO csi \
    ephemeral image quobyte";

/// Checks the volumes of a Pod with a service account, or of a template without one, and returns the names of the good
/// ones.
pub(super) fn check_volumes<'v>(
    volumes: &CheckedPart<'v>,
    account: Option<&str>,
    causes: &mut Causes,
) -> BTreeSet<&'v str> {
    let mut names = BTreeSet::new();
    for volume in volumes.items() {
        let mut found = Causes::default();
        check_source(&volume, account, &mut found);
        let name = volume.field("name");
        if name.is_empty() {
            name.require("", &mut found);
        } else {
            name.dns_label(&mut found);
        }
        if names.contains(name.text()) {
            found.duplicate(&*name.path, name.text());
        }
        if found.is_empty() {
            names.insert(name.text());
        }
        causes.append(&mut found);
    }
    names
}

fn check_source(volume: &CheckedPart<'_>, account: Option<&str>, causes: &mut Causes) {
    let mut sources = SOURCES
        .split(' ')
        .map(|name| volume.field(name))
        .filter(CheckedPart::is_set);
    let Some(source) = sources.next() else {
        causes.required(&*volume.path, "must specify a volume type");
        return;
    };
    check_own_fields(&source, account, causes);
    source.field("defaultMode").within(0..=511, causes);
    let is_downward = source.path.ends_with(".downwardAPI");
    for item in source.field("items").items() {
        if !is_downward {
            item.field("key").require("", causes);
        }
        let path = item.field("path");
        path.require("", causes);
        path.local_path(&path.path, causes);
    }
    for other in sources {
        other.forbid("may not specify more than 1 volume type", causes);
    }
}

/// Checks the fields that only one source of a volume has.
fn check_own_fields(source: &CheckedPart<'_>, account: Option<&str>, causes: &mut Causes) {
    match source.path.rsplit('.').next() {
        Some("hostPath") => {
            const KINDS: &[&str] = &[
                "",
                "BlockDevice",
                "CharDevice",
                "Directory",
                "DirectoryOrCreate",
                "File",
                "FileOrCreate",
                "Socket",
            ];
            let path = source.field("path");
            path.require("", causes);
            if path.text().split('/').any(|step| step == "..") {
                path.invalid("must not contain '..'", causes);
            }
            source.field("type").supported(KINDS, causes);
        }
        Some("emptyDir") => {
            let limit = source.field("sizeLimit");
            if limit.quantity().is_some_and(|limit| limit < 0) {
                limit.forbid("SizeLimit field must be a valid resource quantity", causes);
            }
        }
        Some("ephemeral") => {
            let template = source.field("volumeClaimTemplate");
            if template.is_set() {
                small::claim(&template.field("spec"), causes);
            } else {
                template.require("", causes);
            }
        }
        Some("projected") => check_projected(source, account, causes),
        Some("downwardAPI") => {
            for file in source.field("items").items() {
                check_file(&file, source, causes);
            }
        }
        Some("image") => {
            if account.is_some() {
                source.field("reference").require("", causes);
            }
            source
                .field("pullPolicy")
                .supported(&["Always", "IfNotPresent", "Never"], causes);
        }
        Some("gitRepo") => {
            source.field("repository").require("", causes);
            let directory = source.field("directory");
            directory.local_path(&directory.path, causes);
        }
        Some("iscsi") => {
            source.field("targetPortal").require("", causes);
            let name = source.field("iqn");
            name.require("", causes);
            if !name.is_empty()
                && !["iqn", "eui", "naa"]
                    .iter()
                    .any(|it| name.text().starts_with(it))
            {
                name.invalid(
                    "must be valid format starting with iqn, eui, or naa",
                    causes,
                );
            }
            source.field("lun").within(0..=255, causes);
        }
        Some("secret") => source.field("secretName").require("", causes),
        Some("configMap") => source.field("name").require("", causes),
        Some("persistentVolumeClaim") => source.field("claimName").require("", causes),
        Some("csi") => {
            let driver = source.field("driver");
            driver.require("", causes);
            if !driver.is_empty() {
                let name = driver.text().to_lowercase();
                if !rules::is_subdomain(&name) {
                    driver.dns_subdomain(causes);
                }
            }
        }
        Some("flexVolume") => source.field("driver").require("", causes),
        Some("nfs") => {
            let path = source.field("path");
            source.field("server").require("", causes);
            path.require("", causes);
            if !path.is_empty() && !path.text().starts_with('/') {
                path.invalid("must be an absolute path", causes);
            }
        }
        _ => {}
    }
}

/// Checks the sources of a projected volume, of which each file has a path of its own.
fn check_projected(volume: &CheckedPart<'_>, account: Option<&str>, causes: &mut Causes) {
    let mut paths = BTreeSet::new();
    for source in volume.field("sources").items() {
        let kinds = ["secret", "configMap", "downwardAPI", "serviceAccountToken"];
        let parts = kinds.map(|kind| source.field(kind));
        for part in parts.iter().filter(|part| part.is_set()) {
            let name = part.field("name");
            let is_downward = part.path.ends_with(".downwardAPI");
            if part.path.ends_with(".secret") || part.path.ends_with(".configMap") {
                name.require("", causes);
            }
            for item in part.field("items").items() {
                let path = item.field("path");
                if is_downward {
                    check_file(&item, part, causes);
                }
                if !path.is_empty() && !paths.insert(path.text()) {
                    let shown = if is_downward {
                        path.text()
                    } else {
                        name.text()
                    };
                    causes.invalid(&*volume.path, shown, "conflicting duplicate paths");
                }
            }
        }
        let [.., token] = &parts;
        if token.is_set() {
            let seconds = token.field("expirationSeconds");
            if seconds.is_set() && seconds.number() < 600 {
                seconds.invalid("may not specify a duration less than 10 minutes", causes);
            }
            if token.field("path").is_empty() {
                causes.required(format!("{}.path", volume.path), "");
            }
            if account == Some("") {
                token.forbid(
                    "must not be specified when serviceAccountName is not set",
                    causes,
                );
            }
        }
        if parts.iter().filter(|part| part.is_set()).count() > 1 {
            source.forbid("may not specify more than 1 volume type per source", causes);
        }
    }
}

/// Checks a file that shows a part of its Pod; a server names no index of it.
fn check_file(file: &CheckedPart<'_>, volume: &CheckedPart<'_>, causes: &mut Causes) {
    let [field, resource] = ["fieldRef", "resourceFieldRef"].map(|key| CheckedPart {
        path: format!("{}.{key}", volume.path),
        ..file.field(key)
    });
    match (field.is_set(), resource.is_set()) {
        (true, true) => {
            let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
            causes.invalid(&*volume.path, "resource", detail);
        }
        (false, true) => check_resource_field(&resource, causes),
        (false, false) => {
            let detail = "one of fieldRef and resourceFieldRef is required";
            causes.required(&*volume.path, detail);
        }
        (true, false) => {}
    }
}
